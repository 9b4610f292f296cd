"""Find by file, by concept, by type: the filter says what may be found, the words in what order."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.requirement("REC-13")

START = 1_770_000_000


@pytest.fixture
def filled(memory):
    """One file that many share; words that others, who do not pass, have far more of."""
    work = [
        {
            "ref": f"charge-{n}",
            "text": f"step {n} of the work on payments" + (" retry" if n % 20 == 7 else ""),
            "files": ["src/payments/charge.py"],
            "type": "change",
            "concepts": ["what-changed"],
        }
        for n in range(60)
    ]
    work[33]["text"] = "retry with backoff"
    noise = [
        {
            "ref": f"noise-{n}",
            "text": "retry with backoff, retry again, backoff",
            "files": [f"src/jobs/job{n}.py", "tests/charge.py"],
            "type": "discovery",
            "concepts": ["what-changed-before", "gotchas"],
        }
        for n in range(300)
    ]
    few = [
        {"ref": "bug", "text": "retry without backoff froze the till", "type": "bugfix",
         "concepts": ["gotcha"], "files": ["till.py"]},
        {"ref": "trap", "text": "a timer that nobody stops", "type": "decision",
         "concepts": ["Gotcha"], "files": ["lib/till.py"]},
    ]  # fmt: skip
    for n, one in enumerate([*work, *noise, *few]):
        one |= {"project": "shop", "epoch": START + n}
    memory.add([*work, *few, *noise])
    return memory


def found(run, *words):
    return [hit["ref"] for hit in run("recall", *words, "--json").json["hits"]]


def test_a_file_that_many_share_is_ranked_by_the_words(filled, run):
    refs = found(run, "retry backoff", "--file", "payments/charge.py", "-n", "100")
    assert refs[0] == "charge-33"
    assert sorted(refs[1:]) == ["charge-27", "charge-47", "charge-7"]
    assert [h.ref for h in filled.recall("retry backoff file:payments/charge.py")] == refs


def test_a_file_without_words_is_its_items_newest_first(filled, run):
    refs = found(run, "--file", "payments/charge.py", "-n", "100")
    assert refs == [f"charge-{n}" for n in reversed(range(60))]


def test_the_end_of_a_path_is_whole_names(filled, run):
    assert found(run, "--file", "till.py") == ["trap", "bug"]
    assert found(run, "--file", "lib/till.py") == ["trap", "bug"]  # bug's may be the same, shorter
    assert found(run, "--file", "/home/sam/shop/lib/till.py") == ["trap", "bug"]
    assert run("recall", "--file", "ill.py").code == 1


def test_a_concept_is_the_whole_word_in_any_case(filled, run):
    assert found(run, "--concept", "gotcha") == ["trap", "bug"]
    assert found(run, "retry", "--concept", "GOTCHA") == ["bug"]
    assert run("recall", "--concept", "gotch").code == 1
    refs = found(run, "retry backoff", "--concept", "what-changed", "-n", "5")
    assert refs[0] == "charge-33"
    assert all(ref.startswith("charge-") for ref in refs)


def test_a_type_leaves_only_its_own_in_rank_order(filled, run):
    assert found(run, "retry", "--type", "bugfix") == ["bug"]
    assert found(run, "--type", "bugfix", "--type", "decision") == ["trap", "bug"]
    assert found(run, "backoff", "--type", "change") == ["charge-33"]
    assert filled.recall("backoff retry", types=["change"])[0].ref == "charge-33"


def test_a_filter_that_nothing_passes_finds_nothing(filled, run):
    for option in (("--file", "none.py"), ("--concept", "none"), ("--type", "none")):
        assert run("recall", "retry", *option).code == 1
        assert run("recall", *option).code == 1


def test_filters_hold_together(filled, run):
    assert found(run, "retry", "--type", "bugfix", "--file", "till.py") == ["bug"]
    assert run("recall", "retry", "--type", "bugfix", "--file", "charge.py").code == 1


def test_search_is_another_name_of_recall(filled, run):
    words = ("retry backoff", "--type", "change", "--json")
    assert run("search", *words).json["hits"] == run("recall", *words).json["hits"]


@pytest.mark.requirement("DEL-05")
def test_sessions_are_listed_by_a_line_or_with_all_that_is_known_of_them(run, transcript):
    talk = transcript()
    talk.talk(1)
    run("index")
    (line,) = run("sessions").out.splitlines()
    assert run("sessions", "--format", "index").out == line + "\n"
    assert line.startswith(talk.session[:8])
    whole = run("sessions", "--format", "full").out
    assert whole.startswith(f"session {talk.session}\n")
    for fact in ("claude-code", "/home/sam/code/shop", "branch      main", str(talk.path)):
        assert fact in whole
    told = [run("sessions", "--json", *more).json for more in ((), ("--format", "full"))]
    assert told[0] == told[1]
