"""`Weights.seed_profile()`: the published formula to the letter, with values worked out by hand.

    recency       exp(-0.693 · age / 2 days)
    type          decision .8, bugfix .7, discovery .6, feature .5, refactor .4, change .3, else .3
    similarity    bm25 / best bm25 + .5 · share of the question's concepts
    file overlap  share of the item's own files that exist where one works
    same project  .1

Every text has four words, so its length says nothing and BM25 (k1 = 1.2) of a word that stands
n times in it is n / (1.2 + n), times the same number for all.
"""

from __future__ import annotations

from math import exp

import pytest

from tests.table import each
from yester.clock import DAY
from yester.ingest.prepare import prepare_item
from yester.model import Filters, Item
from yester.recall.rank import Weights
from yester.recall.recall import Asked, recall_hits
from yester.store import open_store

pytestmark = pytest.mark.requirement("REC-05")

NOW = 20_000 * DAY
HERE = ("/home/sam/shop/src/a.py", "/home/sam/shop/src/b.py", "/home/sam/shop/README.md")
QUESTION = "walrus caching retries"
FOUR, TWO, ONE = 1.0, (2 / 3.2) / (4 / 5.2), (1 / 2.2) / (4 / 5.2)
SAME, OTHER = 0.1, 0.0


def aged(days):
    return exp(-0.693 * days / 2)


def item(ref, body, type_="", days=0.0, project="shop", concepts=(), files=(), **more):
    return Item(
        ref, "message", project=f"name:{project}", epoch=NOW - int(days * DAY), type=type_,
        body=body, concepts=concepts, files_read=files, **more,
    )  # fmt: skip


# (item, recency, type, bm25 over the best, concepts · .5, file overlap, same project)
TABLE = [
    (item("all of it", "walrus walrus walrus walrus", "decision", 0, "shop",
          ("caching", "retries"), ("src/a.py", "src/b.py")),
     1.0, 0.8, FOUR, 0.5, 1.0, SAME),
    (item("half of it", "walrus walrus gamma delta", "bugfix", 2, "shop",
          ("caching", "other"), ("src/a.py", "old/gone.py")),
     aged(2), 0.7, TWO, 0.25, 0.5, SAME),
    (item("a third of its files", "walrus sigma tau omega", "discovery", 4, "shop",
          (), ("README.md", "old/gone.py", "lib/b.py")),
     aged(4), 0.6, ONE, 0.0, 1 / 3, SAME),
    (item("elsewhere", "walrus alpha beta kappa", "feature", 1, "blog", ("retries",), ("x/a.py",)),
     aged(1), 0.5, ONE, 0.25, 0.0, OTHER),
    (item("plain", "walrus lambda rho phi", "refactor", 10), aged(10), 0.4, ONE, 0, 0, SAME),
    (item("change", "walrus pear plum fig", "change", 0.5), aged(0.5), 0.3, ONE, 0, 0, SAME),
    (item("no type", "walrus oak elm ash", "", 3), aged(3), 0.3, ONE, 0, 0, SAME),
    (item("unknown", "walrus red blue green", "poem", 30), aged(30), 0.3, ONE, 0, 0, SAME),
    (item("tomorrow", "walrus north south east", "change", -1), 1.0, 0.3, ONE, 0, 0, SAME),
    (item("files alone", "iron lead zinc gold", "bugfix", 2, "shop", (), ("src/b.py",)),
     aged(2), 0.7, 0.0, 0, 1.0, SAME),
]  # fmt: skip
REFS = [row[0].ref for row in TABLE]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    opened = open_store(tmp_path_factory.mktemp("seed"), now=NOW)
    with opened.transaction("items"):
        opened.put([prepare_item(row[0]) for row in TABLE])
    yield opened
    opened.close()


def asked(store, query=QUESTION, weights=None, **more):
    more = {"project": "shop", "files": HERE, **more}
    question = Asked(query, Filters(), 50, now=NOW, explain=True, **more)
    return {hit.ref: hit for hit in recall_hits(store, question, weights or Weights.seed_profile())}


@each(
    ("recency", "type_", "words", "concepts", "files", "project", "ref"),
    [(*row[1:], row[0].ref) for row in TABLE],
)
def test_a_score_is_the_one_worked_out_by_hand(
    store, ref, recency, type_, words, concepts, files, project
):
    hit = asked(store)[ref]
    expected = {
        "recency": recency, "importance": type_, "keyword": words, "concepts": concepts,
        "files": files, "project": project,
    }  # fmt: skip
    found = {name: hit.factors.get(name, 0.0) for name in expected}
    assert found == pytest.approx(expected, abs=1e-4)
    assert hit.score == pytest.approx(sum(expected.values()), abs=2e-4)


def test_nothing_is_left_out_and_the_order_is_that_of_the_sums(store):
    sums = {row[0].ref: sum(row[1:]) for row in TABLE}
    assert list(asked(store)) == sorted(sums, key=lambda ref: -sums[ref])


def test_where_nobody_says_which_project_and_files_theirs_count_nothing(store):
    hits = asked(store, project="", files=())
    assert set(hits) == set(REFS) - {"files alone"}
    for row in TABLE[:-1]:
        recency, type_, words, concepts = row[1:5]
        expected = recency + type_ + words + concepts
        assert hits[row[0].ref].score == pytest.approx(expected, abs=2e-4)


def test_a_question_without_known_concepts_has_none_to_share(store):
    for hit in asked(store, "walrus").values():
        assert hit.factors.get("concepts", 0.0) == 0.0


def test_the_best_match_of_the_words_has_a_full_point_however_weak_it_is(store):
    hits = asked(store, "gamma nowhere missing absent", files=())
    assert [hit.factors["keyword"] for hit in hits.values()] == [1.0]


def test_neither_vectors_nor_neighbours_nor_phrases_play_a_part():
    seed = Weights.seed_profile()
    assert (seed.vector, seed.neighbour, seed.phrase, seed.named) == (0, 0, 0, 0)


def test_the_learned_profile_differs_and_stays_within_one(store):
    learned = asked(store, weights=Weights())
    assert all(0 < hit.score <= 1 for hit in learned.values())
    assert set(learned) == set(REFS)


def test_a_half_life_of_ones_own_replaces_the_two_days(store):
    hits = asked(store, weights=Weights.seed_profile().with_half_life(10))
    assert hits["plain"].factors["recency"] == pytest.approx(0.5, abs=1e-4)
