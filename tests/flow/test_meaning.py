"""Search by meaning, with the model of the package: beside the words, and never instead of them.

Everything here is real: the model, the store, the worker's process. One model is shared by the
tests that stay in this process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import apsw
import pytest

import yester
from tests import finding
from tests.capturing import Told, answered, leave, made, until, worker_that
from tests.readings import every_item
from tests.stores import with_store
from yester.capture.question import ask_worker
from yester.context.block import Here
from yester.context.prompt import Given, at_prompt
from yester.ingest.vectors import embed_waiting, item_parts
from yester.model import Filters
from yester.project import named_project
from yester.recall.rank import TOLD
from yester.recall.recall import Asked, recall_hits
from yester.store import open_store
from yester.store.figures import content_counts
from yester.text.embed import open_embedder
from yester.text.models import DEFAULT, PACKAGED
from yester.text.vector_cache import CachedEmbedder

pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.requirement("REC-03", "REC-04")

NOW = 1_772_000_000.0
NOTES = {
    "login": "Passwords with a colon were refused by the sign-in form; the parser split on it.",
    "cache": "A cold cache let every request through, so the rate limiter moved in front of it.",
    "deploy": "Releases go out on Tuesdays with the blue-green script, never on a Friday.",
    "colour": "The buttons are teal since the designers asked for more contrast.",
    "money": "Sums are kept as whole cents, since floating point lost a penny in March.",
    "backup": "Every night a copy of the tables is put on the second disk.",
}
# question → the note it means; they have no word in common
MEANT = {
    "users cannot authenticate": "login",
    "what day do we ship to production": "deploy",
    "rounding error in amounts": "money",
}


@pytest.fixture(scope="session")
def model():
    found = open_embedder({"embedder": DEFAULT}, PACKAGED)
    assert found is not None
    return found


@pytest.fixture
def vectors_on(monkeypatch):
    monkeypatch.delenv("YESTER_EMBEDDER")


@pytest.fixture
def opened(home, model, vectors_on):
    """The memory in this test's home, opened as often as wanted, with the shared model."""
    memories = []

    def open_(embedder=model):
        memory = yester.open(with_store(home))
        memory.embedder = embedder
        memories.append(memory)
        return memory

    yield open_
    for memory in memories:
        memory.close()


def notes(*refs, **more):
    return [
        {"ref": ref, "kind": "note", "text": NOTES[ref], "project": "shop", "epoch": NOW - 86_400,
         **more} for ref in refs or NOTES
    ]  # fmt: skip


def refs(hits):
    return [hit.ref for hit in hits]


def waiting(memory):
    return refs(memory.store.get(memory.store.unembedded(100)))


def embedded(memory, since=0):
    return sum(embed_waiting(memory.store, memory.embedder, since=since))


# --- meaning beside words ------------------------------------------------------------------------


@pytest.mark.parametrize(("question", "meant"), MEANT.items())
def test_a_question_with_none_of_the_words_finds_the_note_it_means(opened, question, meant):
    memory = opened()
    memory.add(notes())
    assert memory.recall(question, k=2, near=True)[0].ref == meant
    assert meant not in refs(opened(None).recall(question))  # the words alone do not


def test_with_no_model_the_words_alone_answer(home, opened, monkeypatch):
    opened().add(notes())
    monkeypatch.setenv("YESTER_EMBEDDER", "none")
    with yester.open(home) as memory:
        assert memory.embedder is None
        hits = memory.recall("cold cache", explain=True)
        assert refs(hits)[0] == "cache"
        assert all("vector" not in hit.factors for hit in hits)
        assert memory.recall("users cannot authenticate") == []


def test_the_setting_in_the_file_switches_it_off_as_well(home, vectors_on):
    made(home)
    (home / "config.toml").write_text('embedder = "none"\n')
    with yester.open(home) as memory:
        memory.add(notes())
        assert memory.embedder is None
        assert sorted(waiting(memory)) == sorted(NOTES)
        assert refs(memory.recall("teal buttons")) == ["colour"]


def test_items_without_vectors_are_found_by_their_words_beside_those_that_have_them(opened):
    memory = opened()
    memory.add(notes("login", "deploy", "backup"))
    memory.add(notes("cache", "money", "colour"), embed="later")
    assert refs(memory.recall("rate limiter before a cold cache"))[0] == "cache"
    assert memory.recall("users cannot authenticate", near=True)[0].ref == "login"
    both = memory.recall("floating point in the sign-in parser", explain=True)
    assert {"login", "money"} <= set(refs(both))
    by_ref = {hit.ref: hit for hit in both}
    assert "cosine" in by_ref["login"].factors
    assert "cosine" not in by_ref["money"].factors
    assert by_ref["money"].factors["vector"] > 0  # taken to be as near as its words say


def test_a_memory_in_which_nothing_has_a_vector_answers_as_without_a_model(opened):
    memory = opened()
    memory.add(notes(), embed="later")
    for question in ("cold cache", "sign-in form", "second disk every night"):
        with_model, without = (m.recall(question, now=NOW) for m in (memory, opened(None)))
        assert refs(with_model) == refs(without) != []


def test_a_server_that_is_down_costs_the_meaning_but_not_the_answer(home, opened, vectors_on):
    opened().add(notes())
    (home / "config.toml").write_text(
        'embedder = "http"\nembed.url = "http://127.0.0.1:9/v1"\nembed.model = "m"\n'
        "embed.dims = 384\n"
    )
    with yester.open(home) as memory:
        assert memory.embedder is not None
        assert refs(memory.recall("cold cache"))[0] == "cache"


@pytest.mark.requirement("REC-02")
@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ('"cold cache"', {"cache"}),
        ("cache AND limiter", {"cache"}),
        ("cache OR teal", {"cache", "colour"}),
        ("since NOT teal", {"money"}),
        ("floa*", {"money"}),
        ("cache AND teal", set()),
        ("NEAR(cold limiter, 3)", set()),
    ],
)
def test_a_question_with_operators_gets_only_what_obeys_them(opened, question, expected):
    memory = opened()
    memory.add(notes())
    assert set(refs(memory.recall(question))) == expected


@pytest.mark.requirement("REC-09")
def test_filters_hold_for_what_is_found_by_meaning_too(opened):
    memory = opened()
    memory.add([*notes(), *notes("login", project="blog", source="b"), *notes("login", source="c",
                kind="message", epoch=NOW - 40 * 86_400)])  # fmt: skip
    ask = "users cannot authenticate"
    own = memory.recall(ask, project="blog", scope="project", near=True)
    assert {(hit.project, hit.ref) for hit in own} == {("blog", "login")}
    assert {hit.kind for hit in memory.recall(ask, kinds=["message"], near=True)} == {"message"}
    assert {hit.kind for hit in memory.recall(ask, until=NOW - 10 * 86_400, near=True)} == {
        "message"
    }
    assert memory.recall(ask, project="nowhere", scope="project") == []


@pytest.mark.requirement("REC-13")
def test_what_is_about_a_file_of_a_concept_or_of_a_type_is_ranked_by_meaning(opened):
    memory = opened()
    about = {"files_modified": ["src/a.py"], "concepts": ["gotcha"], "type": "bugfix"}
    memory.add([*notes(**about), *notes("login", source="elsewhere")])
    for filters in ({"concepts": ["gotcha"]}, {"types": ["bugfix"]}):
        hits = memory.recall("users cannot authenticate", near=True, **filters)
        assert hits[0].ref == "login"
        assert "elsewhere" not in {item.source for item in memory.store.get([h.id for h in hits])}
    by_file = Asked(
        "users cannot authenticate", Filters(files=("a.py",)), now=NOW * 1000, near=True
    )
    found = recall_hits(memory.store, by_file, embedder=memory.embedder)
    assert found[0].ref == "login"
    assert all(hit.files == ("src/a.py",) for hit in found)


@pytest.mark.requirement("REC-09")
def test_what_stands_beside_an_answer_passes_the_filters_or_is_none(opened):
    memory = opened()
    said = {"project": "shop", "session": "s", "epoch": NOW}
    memory.add([
        {"ref": "p", "kind": "prompt", "text": "Why is the cache cold?", **said},
        {"ref": "m", "kind": "message", "text": "The cache is cold after a deploy.", **said},
    ])  # fmt: skip
    assert refs(memory.recall("cold cache", kinds=["prompt"])) == ["p"]
    assert refs(memory.recall("cold cache", kinds=["message"])) == ["m"]
    assert set(refs(memory.recall("cold cache"))) == {"p", "m"}


def test_each_fact_and_each_section_is_a_part_that_can_be_meant(opened):
    memory = opened()
    memory.add([
        {"ref": "facts", "title": "Sprint notes", "text": "The team talked about lunch.",
         "facts": ["Passwords with a colon were refused by the sign-in form."]},
        {"ref": "sections", "kind": "summary", "text": "The team talked about the weather.",
         "sections": {"learned": "Releases never go out on a Friday."}},
        *notes("colour", "backup"),
    ])  # fmt: skip
    found = {one.ref: one for one in every_item(memory.store)}
    assert len(item_parts(found["facts"])) == len(item_parts(found["sections"])) == 2
    assert memory.recall("users cannot authenticate", near=True)[0].ref == "facts"
    assert memory.recall("what day do we ship to production", near=True)[0].ref == "sections"


def test_what_tools_print_is_found_by_its_words_and_has_no_vector(opened):
    memory = opened()
    memory.add(notes("login"))
    memory.add([{"ref": "out", "kind": "message", "role": "tool", "tool": "Bash",
                 "text": "1 failed: test_checkout_total", "project": "shop"}])  # fmt: skip
    assert content_counts(memory.store).vectors == 1
    assert refs(memory.recall("test_checkout_total"))[0] == "out"


# --- when vectors are made -----------------------------------------------------------------------


def test_what_is_added_for_later_waits_until_somebody_makes_its_vectors(opened):
    memory = opened()
    memory.add(notes("login", "cache"), embed="later")
    assert sorted(waiting(memory)) == ["cache", "login"]
    assert memory.recall("users cannot authenticate") == []
    memory.add(notes("deploy"))  # brings its own vectors and leaves the others to the worker
    assert sorted(waiting(memory)) == ["cache", "login"]
    assert embedded(memory) == 2
    assert waiting(memory) == []
    assert memory.recall("users cannot authenticate", near=True)[0].ref == "login"
    assert embedded(memory) == 0


def test_making_vectors_can_be_stopped_and_taken_up_again(opened):
    memory = opened()
    memory.add(({"ref": f"r{n:02}", "kind": "note", "text": f"note {n}", "epoch": n + 1.0}
                for n in range(40)), embed="later")  # fmt: skip
    steps = embed_waiting(memory.store, memory.embedder)
    done = next(steps)
    steps.close()
    left = waiting(memory)
    assert left == [f"r{n:02}" for n in range(39 - done, -1, -1)]  # the newest are done
    assert sum(embed_waiting(opened().store, memory.embedder, stop=lambda: True)) == 0
    assert embedded(opened()) == 40 - done
    assert waiting(memory) == []


def test_what_is_changed_while_its_vectors_are_made_waits_again(opened, model):
    memory = opened()
    memory.add(notes("login"), embed="later")

    class Meanwhile:
        """The real model; somebody else writes while it works."""

        sha, name, dims, band = model.sha, model.name, model.dims, model.band
        embed_query = staticmethod(model.embed_query)

        def embed(self, texts):
            if texts[0] == NOTES["login"]:
                opened(None).add([{**notes("login")[0], "text": NOTES["deploy"]}])
            return model.embed(texts)

    steps = embed_waiting(memory.store, Meanwhile())
    next(steps)
    assert waiting(memory) == ["login"]
    assert list(steps) == [1]
    assert waiting(memory) == []
    assert memory.recall("what day do we ship to production", near=True)[0].ref == "login"
    (item,) = memory.store.find_by_ref("login")
    asked = model.embed_query("users cannot authenticate")
    near = finding.cosines(memory.store, asked, model.sha, [item.id])[item.id]
    assert near.cosine == pytest.approx(float(model.embed([NOTES["deploy"]])[0] @ asked), abs=0.02)


def test_an_item_with_nothing_to_embed_does_not_wait_for_ever(opened):
    memory = opened()
    memory.add([{"ref": "empty", "kind": "note", "text": ""}, {"ref": "blank", "text": "  \n"}])
    assert waiting(memory) == []


# --- the cache -----------------------------------------------------------------------------------


def rows(place):
    """What the cache holds: (texts, file)"""
    (file,) = place.glob("*.db")
    db = apsw.Connection(str(file))
    try:
        return [row[0] for row in db.execute("select rowid from vector order by rowid")]
    finally:
        db.close()


def test_no_text_is_embedded_twice_with_a_cache(tmp_path, opened, model, monkeypatch):
    made_, place = [], tmp_path / "cache"

    class Counting:
        """The real model, which says what it was asked for."""

        name, sha, dims, band = model.name, model.sha, model.dims, model.band

        def embed(self, texts):
            made_.extend(texts)
            return model.embed(texts)

        def embed_query(self, text):
            made_.append(text)
            return model.embed_query(text)

    cached = CachedEmbedder(Counting(), place)
    memory = opened(cached)
    memory.add(notes("login", "cache"))
    memory.add([*notes("login", source="again"), *notes("cache", "deploy", source="again")])
    assert sorted(made_) == sorted(NOTES[ref] for ref in ("login", "cache", "deploy"))
    before = memory.recall("users cannot authenticate", now=NOW, near=True)
    memory.recall("users cannot authenticate", k=3, near=True)
    assert len(made_) == 4
    assert len(rows(place)) == 4
    again = opened(CachedEmbedder(Counting(), place))
    assert again.recall("users cannot authenticate", now=NOW, near=True) == before
    assert len(made_) == 4
    cached.close()


def test_the_variable_names_the_cache_and_its_rows_stay_one_a_text(
    tmp_path, home, vectors_on, monkeypatch
):
    place = tmp_path / "cache"
    monkeypatch.setenv("YESTER_VECTOR_CACHE", str(place))
    seen = []
    for ref in ("one", "two"):
        with yester.open(home) as memory:
            memory.add([{"ref": ref, "text": "The same text for two items."}])
            seen.append((content_counts(memory.store).vectors, len(rows(place))))
    assert seen == [(1, 1), (2, 1)]


# --- the same everywhere -------------------------------------------------------------------------


def test_a_new_process_finds_the_same_with_the_same_scores(opened, home, run):
    memory = opened()
    memory.add(notes())
    program = (
        "import sys, json, yester\n"
        "with yester.open(sys.argv[1]) as memory:\n"
        "    print(json.dumps([[h.ref, h.score] for q in sys.argv[3:]\n"
        "                      for h in memory.recall(q, now=float(sys.argv[2]), near=True)]))"
    )
    questions = [*MEANT, "cold cache", "night copy of the tables"]
    done = subprocess.run(
        [sys.executable, "-c", program, str(home), str(NOW), *questions],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.stderr == ""
    here = [[hit.ref, hit.score] for q in questions for hit in memory.recall(q, now=NOW, near=True)]
    assert json.loads(done.stdout) == here
    assert len(here) > 5


@pytest.mark.parametrize("question", ["cold cache", "rounding error in amounts", '"cold cache"'])
def test_the_factors_of_an_answer_add_up_to_its_score(opened, question):
    memory = opened()
    memory.add(notes(files=["src/a.py"], concepts=["cache"], type="decision"))
    hits = memory.recall(
        question, explain=True, project="shop", files=["src/a.py"], now=NOW, near=True
    )
    assert hits
    for hit in hits:
        added = [value for name, value in hit.factors.items() if name not in TOLD]
        assert sum(added) == pytest.approx(hit.score)
        assert 0 < hit.score <= 1
        assert {"keyword", "recency", "importance", "files", "project"} <= set(hit.factors)


def test_a_score_does_not_depend_on_how_many_are_wanted(opened):
    memory = opened()
    memory.add(notes())
    scores = {
        k: {hit.ref: hit.score for hit in memory.recall("cold cache since Friday", k, now=NOW)}
        for k in (1, 3, 20)
    }
    assert len(scores[20]) > 3
    for k in (1, 3):
        assert scores[k] == {ref: scores[20][ref] for ref in scores[k]}
    assert [*scores[20]][:3] == [*scores[3]]


def test_any_text_can_be_asked_with_a_model(opened):
    memory = opened()
    memory.add(notes())
    for text in ("\udcff broken", "𝔘nicode 数据库", "x" * 5_000, "a/b.py " * 40, "'\"()*:^"):
        for hit in memory.recall(text):
            assert 0 < hit.score <= 1


@pytest.mark.requirement("REC-02")
def test_an_argument_that_is_no_text_is_asked_all_the_same(run, home, opened):
    opened(None).add(notes())
    done = run("recall", "\udcff", "teal")
    assert done.code == 0
    assert done.err.startswith("6 of 6 texts have no vector yet: ")
    assert done.err.count("\n") == 1
    assert "teal" in done.out


# --- files, projects -----------------------------------------------------------------------------

# --- what is given to an agent unasked ----------------------------------------------------------


def given(memory, prompt, session="now", known=()):
    here = Here(named_project("shop"), session, int(NOW * 1000), embedder=memory.embedder)
    found = at_prompt(memory.store, prompt, here, Given(known))
    return refs(memory.store.get([one.item for one in found.shown]))


@pytest.mark.requirement("REC-17")
def test_a_prompt_gets_what_it_means_and_an_unrelated_one_nothing(opened):
    memory = opened()
    memory.add(notes())
    for question, meant in (
        ("why were passwords with a colon refused by the sign-in form?", "login"),
        ("are the sums kept as whole cents or as floating point?", "money"),
    ):
        assert given(memory, question)[:1] == [meant]
    assert given(memory, "write a haiku about the autumn leaves in Kyoto") == []


@pytest.mark.requirement("REC-17")
def test_a_prompt_that_is_recorded_already_is_no_answer_to_itself(opened):
    memory = opened()
    prompt = "please write a haiku about the autumn leaves in Kyoto"
    said = {"ref": "p1", "kind": "prompt", "role": "user", "project": "shop", "session": "now"}
    memory.add([*notes(), {**said, "text": prompt, "epoch": NOW - 1}])
    assert given(memory, prompt) == []
    asked_before = memory.recall(prompt, project="shop", now=NOW)[0]
    assert asked_before.ref == "p1"
    assert given(memory, prompt, session="later", known={asked_before.id}) == []
    assert given(memory, prompt, session="later") == []


@pytest.mark.requirement("REC-05")
def test_what_is_about_the_files_in_hand_rises_and_nothing_is_hidden(opened):
    memory = opened(None)
    same = {"kind": "note", "project": "shop", "epoch": NOW}
    memory.add([
        {"ref": "about", "text": "The cache is cold at noon.", "files": ["src/store.py"], **same},
        {"ref": "other", "text": "The cache is cold at night.", "files": ["src/x.py"], **same},
        {"ref": "none", "text": "The cache is cold at dawn.", **same},
        {"ref": "silent", "text": "Nothing alike.", "files": ["src/store.py"], **same},
    ])  # fmt: skip
    plain = {hit.ref: hit.score for hit in memory.recall("cold cache", now=NOW)}
    assert set(plain) == {"about", "other", "none"}
    for asked in (["src/store.py"], ["/home/sam/shop/src/store.py"], ["store.py"]):
        hits = memory.recall("cold cache", now=NOW, files=asked)
        assert refs(hits)[0] == "about"
        assert set(refs(hits)) == {"about", "other", "none", "silent"}
    unknown = memory.recall("cold cache", now=NOW, files=["nowhere.py"])
    assert set(refs(unknown)) == set(plain)


@pytest.mark.requirement("REC-05")
def test_more_of_the_files_in_hand_is_worth_more(opened):
    memory = opened(None)
    same = {"kind": "note", "project": "shop", "epoch": NOW}
    memory.add([
        {"ref": "one", "text": "The cache is cold at noon.", "files": ["a.py"], **same},
        {"ref": "two", "text": "The cache is cold at dawn.", "files": ["a.py", "b.py"], **same},
    ])  # fmt: skip
    hits = memory.recall("cold cache", now=NOW, files=["a.py", "b.py"], explain=True)
    assert refs(hits) == ["two", "one"]
    assert hits[0].factors["files"] == pytest.approx(2 * hits[1].factors["files"])


@pytest.mark.requirement("REC-05")
@pytest.mark.parametrize("path", ["src/cache.py", "cache.py", "/home/sam/shop/src/cache.py"])
def test_a_path_in_the_question_lifts_what_is_about_it(opened, path):
    memory = opened(None)
    same = {"kind": "note", "project": "shop", "epoch": NOW}
    memory.add([
        {"ref": "about", "text": "It is slow at noon.", "files": ["src/cache.py"], **same},
        {"ref": "other", "text": "It is slow at dawn.", "files": ["src/x.py"], **same},
    ])  # fmt: skip
    hits = memory.recall(f"why is {path} slow", now=NOW, explain=True)
    assert refs(hits) == ["about", "other"]
    assert hits[0].factors["named"] > hits[1].factors["named"] == 0
    assert "named" not in memory.recall("why is it slow", explain=True)[0].factors


@pytest.mark.requirement("REC-05", "REC-06")
def test_the_own_project_rises_and_no_other_is_filtered_out(opened):
    memory = opened(None)
    for name in ("shop", "blog", "wiki"):
        memory.add([{"ref": name, "kind": "note", "project": name, "epoch": NOW,
                     "text": f"The cache is cold at {name}."}])  # fmt: skip
    for name in ("shop", "blog", "wiki", "name:wiki"):
        hits = memory.recall("cold cache", project=name, now=NOW, explain=True)
        assert hits[0].project == name.removeprefix("name:")
        assert set(refs(hits)) == {"shop", "blog", "wiki"}
        assert hits[0].factors["project"] > hits[1].factors["project"] == 0
    nowhere = memory.recall("cold cache", project="nowhere", now=NOW, explain=True)
    assert set(refs(nowhere)) == {"shop", "blog", "wiki"}
    assert "project" not in nowhere[0].factors


@pytest.mark.requirement("REC-06")
def test_a_clearly_better_answer_of_another_project_stays_the_first(opened):
    memory = opened()
    memory.add([*notes("cache", project="blog"), *notes("colour", "backup", project="shop")])
    assert memory.recall("rate limiter before a cold cache", project="shop")[0].ref == "cache"


# --- the worker ----------------------------------------------------------------------------------


@pytest.fixture
def worker(home, own_home, vectors_on, zygote_of_commands):
    """`yester worker run` with the model; ended at the test's end."""
    made(home)
    process = zygote_of_commands.start_worker(home)
    try:
        until(lambda: ask_worker(home / "run", "GET /health", 2.0))
        yield process
    finally:
        ask_worker(home / "run", "POST /stop", 5.0)
        try:
            process.wait(20)
        finally:
            process.kill()


@pytest.fixture
def store(home):
    opened = []

    def open_():
        if not opened:
            opened.append(open_store(home, now=1))
        return opened[0]

    yield open_
    for one in opened:
        one.close()


def told():
    session = Told()
    return [
        session.prompt("Users report that their passwords with a colon are refused, please look"),
        session.stop("The sign-in parser split the password at the colon; it splits once now."),
        session.prompt("What colour are the buttons?", turn="turn-2"),
        session.stop("They are teal since the designers asked for more contrast."),
    ]


@pytest.mark.requirement("CAP-03")
def test_a_worker_embeds_what_hooks_bring_and_answers_as_one_would_in_process(
    home, worker, store, run, opened
):
    leave(home, *told())
    ask_worker(home / "run", "POST /drain", 10.0)
    counts = until(lambda: (c := content_counts(store())).vectors and not c.unembedded and c)
    assert counts.vectors == 4
    assert run("status", "--json").json["vectors"] == {"done": 4, "waiting": 0}

    question = "somebody cannot authenticate"
    through = run("recall", question, "--json", "--explain", "--near").json["hits"]
    with_words = run("recall", question, "--json", "--near", env={"YESTER_EMBEDDER": "none"}).json[
        "hits"
    ]
    here = opened().recall(question, explain=True, near=True)
    assert [hit["id"] for hit in through] == [hit.id for hit in here]
    assert {hit["id"]: hit["score"] for hit in through} == pytest.approx(
        {hit.id: hit.score for hit in here}, abs=1e-3
    )
    assert through[0]["factors"]["vector"] > 0
    assert [hit["id"] for hit in with_words] != [hit["id"] for hit in through]

    words = "%00".join(map(quote, ("--json", "--explain", "--near", question)))
    request = f"POST /recall/print?cwd={quote(str(Path.cwd()))}&words={words}"
    printed = json.loads(ask_worker(home / "run", request, 5.0))["hits"]
    assert [(hit["id"], hit["title"]) for hit in printed] == [
        (hit["id"], hit["title"]) for hit in through
    ], "what it would print for the command, which then loads nothing"
    for words in ("--json%00--no-such-option", "teal", "--help", "--json%00pterodactyl%00-p%00no"):
        request = f"POST /recall/print?cwd=/&words={words}"
        assert ask_worker(home / "run", request, 5.0) is None, "left to the command"

    resident = Path(f"/proc/{worker.pid}/statm")
    if resident.exists():
        pages = int(resident.read_text().split()[1])
        assert pages * os.sysconf("SC_PAGE_SIZE") < 260e6


def test_the_command_prints_what_the_worker_says_and_searches_itself_where_it_says_nothing(
    home, run, opened, vectors_on
):
    opened(None).add(notes())
    said = {"id": 1, "ref": "r", "kind": "note", "type": "", "project": "shop", "session": "",
            "title": "From the worker", "text": "", "epoch": NOW, "score": 0.5}  # fmt: skip
    for answer, expected in (
        (answered(json.dumps({"hits": [said]}).encode()), ["r"]),
        (answered(json.dumps([said]).encode()), ["colour"]),  # of another version
        (answered(b"", b"404 Not Found"), ["colour"]),
        (b"", ["colour"]),
    ):
        with worker_that(home, lambda client, say=answer: (client.sendall(say), client.close())):
            assert [hit["ref"] for hit in run("recall", "teal", "--json").json["hits"]] == expected


def test_switching_the_model_off_and_on_again_while_the_worker_runs(home, worker, store, run):
    question = "somebody cannot authenticate"

    def recalled():
        return run("recall", question, "--json", "--explain", "--near").json["hits"]

    def settled(setting):
        (home / "config.toml").write_text(setting)
        ask_worker(home / "run", "POST /drain", 10.0)  # it looks at its settings before it works

    first, *others = told()
    leave(home, first)
    settled("")
    until(lambda: content_counts(store()).vectors == 1)
    settled('embedder = "none"\n')
    leave(home, *others)
    ask_worker(home / "run", "POST /drain", 10.0)
    until(lambda: content_counts(store()).unembedded == 3)
    assert all("vector" not in hit["factors"] for hit in recalled())
    settled('embedder = "yester-embed-1"\n')
    until(lambda: not content_counts(store()).unembedded)
    assert content_counts(store()).vectors == 4
    assert recalled()[0]["factors"]["vector"] > 0


def test_a_question_the_worker_cannot_answer_costs_only_itself(home, worker):
    for asked in ("", "{}", '{"query":"x","order":"random"}', '{"query":"x","k":-1}', "nonsense"):
        said = ask_worker(home / "run", f"POST /recall?asked={asked}", 5.0)
        assert said is None or not json.loads(said)["hits"]
    assert json.loads(ask_worker(home / "run", "GET /health", 5.0))["pid"] == worker.pid
