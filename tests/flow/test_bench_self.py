"""`yester bench self` on a history whose right answers are known."""

from __future__ import annotations

import pytest

import yester
from tests.readings import every_item
from tests.stores import with_store
from yester.context.talk import trivial
from yester.model import Hit, Item
from yester.operate.bench import Past, make_questions, measure_recall, read_history
from yester.store.figures import content_counts

DAY = 86_400
BEGAN = 1_770_000_000
TOPICS = (
    "lighthouse", "marmalade", "gearbox", "accordion", "submarine", "origami",
    "volcano", "tapestry", "beehive", "chandelier", "snowplough", "telescope",
)  # fmt: skip


def session(name: str, day: int, prompt: str, *files: str, project: str = "shop") -> list[dict]:
    """A prompt, and a minute later the change of each file."""
    base = {"project": project, "session": name, "agent": "claude-code"}
    epoch = BEGAN + day * DAY
    said = {"ref": f"{name}:0", "kind": "prompt", "role": "user", "text": prompt, "epoch": epoch}
    edits = [
        {"ref": f"{name}:{n}", "kind": "message", "role": "tool", "tool": "Edit",
         "text": "changed", "files_modified": [file], "epoch": epoch + 60 * n}
        for n, file in enumerate(files, 1)
    ]  # fmt: skip
    return [{**base, **one} for one in (said, *edits)]


def two_rounds() -> list[dict]:
    """Every topic is worked on twice, in the same order: when it comes back, the session that knows
    about it is the twelfth newest, one of the twelve to twenty-three there are."""
    items = []
    for day, topic in enumerate(TOPICS):
        prompt = f"Please build the {topic} page of the shop"
        items += session(f"first-{topic}", day, prompt, f"src/{topic}.py", "CHANGES.md")
    for day, topic in enumerate(TOPICS, len(TOPICS)):
        prompt = f"What is it with this {topic} today?"
        items += session(f"again-{topic}", day, prompt, f"src/{topic}.py", "CHANGES.md")
    return items


@pytest.fixture
def filled(home, run):
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text('embedder = "none"\n')
    with yester.open(with_store(home)) as memory:
        memory.add(two_rounds())
        for topic in TOPICS:  # says it best, but too late to be found
            memory.add(session(f"late-{topic}", 99, f"{topic} {topic} today"))
    return run


def test_recall_finds_what_newest_first_does_not(filled):
    done = filled("bench", "self", "--json")
    assert done.code == 0, done.err
    report = done.json
    assert (report["questions"], report["sessions"], report["projects"]) == (12, 36, 1)
    assert (report["relevant"], report["earlier"]) == (1.0, 17.5)
    means = {
        name: {metric: found["mean"] for metric, found in ranking.items()}
        for name, ranking in report["rankings"].items()
    }
    assert means["recall"] == {"hit@5": 1.0, "recall@10": 1.0, "mrr@10": 1.0}
    assert means["newest"] == {"hit@5": 0.0, "recall@10": 0.0, "mrr@10": 0.0}
    by_chance = sum(10 / earlier for earlier in range(12, 24)) / 12
    assert means["random"]["recall@10"] == pytest.approx(by_chance)
    assert report["gain"]["recall@10"] == {"mean": 1.0, "low": 1.0, "high": 1.0}


def test_the_table_says_what_it_does_not_measure(filled):
    done = filled("bench", "self")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0].startswith("12 questions from 36 sessions in 1 project;")
    assert [line.strip().split("  ")[0] for line in lines[3:6]] == [
        "recall",
        "newest first",
        "random",
    ]
    assert lines[3].split()[1:5] == ["1.000", "(1.000", "to", "1.000)"]
    assert "Not measured: whether an answer helped" in done.out


def test_it_changes_nothing(filled, home):
    def content() -> tuple:
        with yester.open(with_store(home)) as memory:
            return (
                list(every_item(memory.store)),
                content_counts(memory.store).items,
                sorted(home.iterdir()),
            )

    assert filled("status").code == 0  # the first command records the home
    before = content()
    assert filled("bench", "self").code == 0
    assert content() == before


def test_a_limit_takes_the_newest_and_a_project_those_of_its_own(filled, home):
    assert filled("bench", "self", "--limit", "10", "--json").json["earlier"] == 18.5
    with yester.open(with_store(home)) as memory:
        memory.add({**item, "project": "blog", "ref": f"b{item['ref']}"} for item in two_rounds())
    assert filled("bench", "self", "--json").json["questions"] == 24
    report = filled("bench", "self", "--project", "blog", "--json").json
    assert (report["questions"], report["sessions"], report["projects"]) == (12, 24, 1)
    missing = filled("bench", "self", "--project", "nowhere")
    assert missing.code == 1
    assert "no project is called 'nowhere'" in missing.err


def test_without_enough_history_it_says_so(run, home):
    done = run("bench", "self")
    assert done.code == 1
    assert done.err.startswith("Not enough history: 0 questions from 0 sessions, and 10 are needed")
    assert not (home / "yester.db").exists()
    unasked = {f"again-{topic}" for topic in TOPICS[:3]}
    with yester.open(with_store(home)) as memory:
        memory.add(item for item in two_rounds() if item["session"] not in unasked)
    done = run("bench", "self", "--json")
    assert (done.code, done.json) == (1, {"questions": 9, "sessions": 21})


# --- which sessions are questions, and what answers them -------------------------------------


def past(name: str, begun: int, prompt: str = "", project: str = "shop", **edits: int) -> Past:
    return Past(("codex", name), project, begun, prompt or f"do {name}", edits)


BEFORE = [past(f"old{n}", n, **{f"file{n}": n}) for n in range(12)]


def asked(*more: Past, limit: int = 99) -> dict[str, set[str]]:
    """Session → the sessions that answer it."""
    ordered = sorted([*BEFORE, *more], key=lambda one: one.begun)
    found = make_questions(ordered, limit)
    return {q.session.name[1]: {name for _, name in q.relevant} for q in found}


@pytest.mark.parametrize(
    ("new", "answers"),
    [
        pytest.param(past("new", 50, file3=51), {"old3"}, id="the same file"),
        pytest.param(past("new", 50, file3=51, file7=52), {"old3", "old7"}, id="two of them"),
        pytest.param(past("new", 50, other=51), None, id="a file nobody knows"),
        pytest.param(past("new", 50), None, id="no file at all"),
        pytest.param(past("new", 50, "do old4", file3=51), None, id="an old prompt once more"),
        pytest.param(past("new", 50, "DO\n old4 ", file3=51), None, id="the same but for spaces"),
        pytest.param(Past(("codex", "new"), "shop", 50, "", {"file3": 51}), None, id="no prompt"),
        pytest.param(past("new", 50, project="blog", file3=51), None, id="another project"),
        pytest.param(past("new", 8, file3=51), None, id="too few sessions before it"),
    ],
)
def test_a_session_is_answered_by_earlier_ones_that_changed_its_files(new, answers):
    assert asked(new) == ({} if answers is None else {"new": answers})


def test_a_change_made_after_the_question_is_no_label():
    long = past("long", 20, shared=80)
    assert asked(long, past("new", 50, shared=60)) == {}
    assert asked(long, past("new", 90, shared=91)) == {"new": {"long"}}


def test_a_third_of_the_files_of_the_smaller_session_must_be_shared():
    wide = past("wide", 20, a=20, b=20, c=20, d=20)
    assert asked(wide, past("new", 50, a=51, x=51, y=51)) == {"new": {"wide"}}
    assert asked(wide, past("new", 50, a=51, x=51, y=51, z=51)) == {}


def test_a_file_that_many_sessions_change_says_nothing():
    notes = [past(f"n{n}", 20 + n, changes=20 + n) for n in range(5)]
    assert asked(*notes[:3], past("new", 50, changes=51))["new"] == {"n0", "n1", "n2"}
    assert asked(*notes, past("new", 50, changes=51)) == {}


def test_the_newest_questions_come_first():
    new = [past(f"new{n}", 50 + n, **{f"file{n}": 60}) for n in range(4)]
    assert list(asked(*new, limit=2)) == ["new3", "new2"]


def item(session: str, epoch: int, body: str = "", kind: str = "message", **more) -> Item:
    return Item(f"{session}{epoch}", kind, "shop", session, epoch=epoch, body=body, **more)


def test_a_session_is_what_its_items_tell():
    items = [
        item("s", 400, "Rewrite the parser of the config file", kind="prompt"),
        item("s", 200, "ok, continue", kind="prompt"),
        item("s", 300, "Why does the parser fail on tabs?", kind="prompt"),
        item("s", 250, "Look through the whole parser please", kind="prompt", actor="explorer"),
        item("s", 500, files_modified=("a.py", "b.py")),
        item("s", 600, files_modified=("a.py",), files_read=("c.py",)),
        item("s", 100, files_modified=("gone.py",), status="retired"),
        item("", 50, "of no session", files_modified=("d.py",)),
        item("t", 0, "of no time"),
    ]
    expected = Past(
        ("", "s"), "shop", 200, "Why does the parser fail on tabs?", {"a.py": 500, "b.py": 500}
    )
    assert read_history(items, trivial) == read_history(reversed(items), trivial) == [expected]


def test_hits_count_once_per_session_and_never_for_the_session_that_asks():
    (question,) = make_questions([*BEFORE, past("new", 50, file3=51)], 9)
    asked_for = []

    def recall(given) -> list[Hit]:
        asked_for.append(given)
        return [
            Hit(n, "", "message", "", "shop", name, "", "", 0.0, 1.0, agent="codex")
            for n, name in enumerate(["new", "old1", "old1", "", "old1", "old3", "old3"])
        ]

    report = measure_recall([question], recall)
    assert asked_for == [question]
    assert report.rankings["recall"]["mrr@10"].mean == 0.5
    assert report.rankings["newest"]["mrr@10"].mean == pytest.approx(1 / 9)
