"""What every weight, half-life, threshold and floor makes of items that are known.

Moving any of these numbers by a fifth changes a line here. After a change that is meant:
YESTER_GOLDEN=1 pytest …
"""

from __future__ import annotations

import os
from math import inf
from pathlib import Path

import numpy as np
import pytest

from yester.clock import DAY
from yester.ingest.prepare import prepare_item
from yester.model import (
    KINDS,
    Feedback,
    Filters,
    Hit,
    Injection,
    Item,
    Session,
    UseCounts,
    replace,
)
from yester.recall.feedback import WORTH, usefulness
from yester.recall.floor import LEAST_CHANCE, judge_hits, other_evidence, turn_evidence
from yester.recall.rank import FIELD_WEIGHTS, HALF_LIFE, IMPORTANCE, Weights
from yester.recall.recall import Asked, recall_hits
from yester.recall.staleness import MARGIN, Facts, Staleness, Touch, Work, judge_staleness
from yester.store import open_store
from yester.text.document import FIELDS
from yester.text.models import MODELS

pytestmark = pytest.mark.requirement("REC-01", "REC-05")

GOLDEN = Path(__file__).parent / "scores.txt"
NOW = 20_000 * DAY
VECTOR = np.eye(8, dtype=np.float32)


class Fixed:
    """An embedder that reads every question as the first axis."""

    sha, band = "fixed", (0.2, 0.9)

    def embed_query(self, text):  # noqa: ARG002
        return VECTOR[0]


def chatter(ref):
    """Ten words that no other item has: what says the same would be collapsed."""
    own = ref.replace(".", "")
    return " ".join(f"{own}{letter}" for letter in "bcdfghjklm")


def filled(kind, field, word):
    value = {"body": f"{word} {chatter(kind)}", "title": word, "subtitle": word, "tool": word}.get(
        field
    )
    given = {
        "facts": (word,), "concepts": (word,), "files_read": (f"src/{word}.py",),
        "sections": {"learned": word},
    }  # fmt: skip
    name = "files_read" if field == "files" else field
    texts = {"body": chatter(f"{kind}.{field}"), name: value if value is not None else given[name]}
    return Item(f"{kind}.{field}", kind, project="name:shop", epoch=NOW, **texts)


def items():
    for kind, weights in FIELD_WEIGHTS.items():
        for field, weight in zip(FIELDS, weights, strict=True):
            if weight:
                yield filled(kind, field, "walrus")
    for type_ in dict.fromkeys((*IMPORTANCE, *HALF_LIFE)):
        yield Item(
            f"type.{type_}", "message" if type_ in KINDS else "observation", project="name:shop",
            type=type_, epoch=NOW - 40 * DAY, title="heron", body=chatter(f"type.{type_}"),
        )  # fmt: skip
    for days in (1, 10, 100, 400):
        yield Item(
            f"aged.{days}",
            "message",
            "name:shop",
            body=f"otter {chatter(str(days))}",
            epoch=NOW - days * DAY,
        )
    for role in ("user", "thinking", "tool"):
        yield Item(
            f"role.{role}",
            "message",
            "name:shop",
            role=role,
            body=f"lynx {chatter(role)}",
            epoch=NOW,
        )
    for ref, body in {
        "name.own": "database", "name.other": "db", "begins": "zebu", "side": "brown bear",
        "close": "brown is the bear", "apart": f"brown {chatter('apart')} bear",
        "long": "ibex " * 3 + " ".join(map(chatter, "abcd")),        "short": "ibex", "part.one": "quail", "unembedded": "quail quail", "far": chatter("far"), "nearer": chatter("nearer"),
    }.items():  # fmt: skip
        yield Item(ref, "message", "name:shop", body=body, epoch=NOW)
    yield Item(
        "elsewhere", "message", project="name:blog", body=f"lynx {chatter('blog')}", epoch=NOW
    )
    yield Item("touched", "observation", project="name:shop", title="lynx", body="lynx",
               concepts=("caching",), files_modified=("src/cart.py",), epoch=NOW)  # fmt: skip
    for number, body in enumerate(("vole", "the answer", "nothing", "stoat")):
        yield Item(
            f"talk.{number}", "message", "name:shop", "s", agent="a", body=body, epoch=NOW + number
        )


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    opened = open_store(tmp_path_factory.mktemp("scores"), now=NOW)
    with opened.transaction("items"):
        opened.put_session(Session("s", "a", "name:shop"))
        opened.put([prepare_item(one) for one in items()])
        opened.use_model("fixed")
        near = (VECTOR[0] + VECTOR[1]) / np.sqrt(2)
        (one,) = opened.find_by_ref("part.one")
        opened.put_vectors(one.id, "fixed", [VECTOR[2], near, VECTOR[3]])
        (one,) = opened.find_by_ref("short")
        opened.put_vectors(one.id, "fixed", [near])
        for ref, cosine in (("far", 0.29), ("nearer", 0.32)):
            (one,) = opened.find_by_ref(ref)
            vector = cosine * VECTOR[0] + np.sqrt(1 - cosine**2) * VECTOR[4]
            opened.put_vectors(one.id, "fixed", [vector])
        (shown,) = opened.find_by_ref("role.user")
        opened.append([Injection(n, "SessionStart", shown.id, 0.5, 9, NOW) for n in (7, 8, 9)])
        (used,) = opened.find_by_ref("role.tool")
        opened.append([Feedback(used.id, "acted", NOW, 7)])
    yield opened
    opened.close()


def explained(store, query, most=60, embedder=None, fates=None, weights=None, **more):
    asked = Asked(query, Filters(), most, now=NOW, explain=True, **more)
    yield f"? {query} {more}"
    for hit in sorted(recall_hits(store, asked, weights, embedder, fates), key=lambda h: h.ref):
        factors = " ".join(f"{name}={value:.4f}" for name, value in hit.factors.items())
        yield f"{hit.ref:<22} {hit.score:.4f}  {factors}"


def gone(works):
    return {one.item: Staleness("gone", "gone", 1.0) for one in works}


def searches(store):
    yield from explained(store, "walrus")
    yield from explained(store, "heron")
    yield from explained(store, "otter", window=50 * DAY)
    yield from explained(store, "lynx", project="shop", files=("src/cart.py",), fates=gone)
    yield from explained(store, "lynx caching in src/cart.py", project="shop")
    yield from explained(store, "database")
    yield from explained(store, "zebuherd")
    yield from explained(store, "brown bear")
    yield from explained(store, "ibex")
    yield from explained(store, "quail", embedder=Fixed())
    yield from explained(store, "vole stoat")
    yield from explained(store, "ibex quail lynx otter heron walrus vole stoat brown bear names")


def hit(score, length=600, kind="message", **factors):
    return Hit(1, "r", kind, "", "shop", "s", "", "x" * length, 0.0, score, factors=factors)


def floors():
    yield f"# from {LEAST_CHANCE}: lead, names, days or characters, stranger"
    for facts in (
        (0.0, 0, 0), (0.5, 0, 0), (0.0, 1, 0), (0.0, 4, 0), (0.0, 0, 3), (0.0, 0, 30),
        (0.0, 0, 5_000), (0.0, 0, 0, True),
    ):  # fmt: skip
        evidence = f"{turn_evidence(*facts):.4f} {other_evidence(*facts):.4f}"
        yield f"{' '.join(map(str, facts))}: {evidence}"
    yield "# the first of several"
    for turn in (0, 1):
        for scores in ([0.9], [0.9, 0.1], [0.9] + [0.5] * 8 + [0.4, 0.3]):
            hits = [replace(hit(score), prompt_number=turn) for score in scores]
            (first, *_) = judge_hits(hits, "", "p", 0)
            yield f"{turn} {len(hits)} {first.chance:.4f}"


def uses():
    for what in WORTH:
        yield f"{what:<10} {usefulness(UseCounts(0, 0, {what: 1})):.4f}"
    yield f"ignored    {usefulness(UseCounts(5, 1, {})):.4f}"


def fates():
    def judge(name, facts, **work):
        found = judge_staleness([Work(1, 0, **work)], facts)
        factor = found[1].factor if found else inf
        return f"{name:<22} {factor:.4f}"

    for changes in (1, 3, 9):
        touches = {"a.py": tuple(Touch(MARGIN + n, "M") for n in range(1, changes + 1))}
        yield judge(f"changed {changes}", Facts({"a.py": True}, touches, 0), read=("a.py",))
    moved = {"a.py": (Touch(MARGIN + 1, "R", "b.py"),)}
    yield judge("renamed", Facts({"a.py": False, "b.py": True}, moved, 0), read=("a.py",))
    yield judge("gone", Facts({"a.py": False}, {}, 0), read=("a.py",))
    both = Facts({"a.py": False, "b.py": True}, {}, 0)
    yield judge("modified counts twice", both, modified=("a.py",), read=("b.py",))
    soon = {"a.py": (Touch(9 * 60_000, "M"), Touch(11 * 60_000, "M"))}
    yield judge("after ten minutes", Facts({"a.py": True}, soon, 0), read=("a.py",))


def test_every_number_of_a_score_is_the_one_that_was_measured(store):
    lines = [
        *searches(store),
        *(f"{model.name} {model.band}" for model in MODELS.values()),
        *floors(), *uses(), *fates(),
    ]  # fmt: skip
    text = "\n".join(lines) + "\n"
    if os.environ.get("YESTER_GOLDEN"):
        GOLDEN.write_text(text, "utf-8")
    assert text == GOLDEN.read_text("utf-8")


def test_the_weights_of_candidates_bound_what_a_search_costs():
    assert (Weights().words, Weights().nearest) == (220, 200)
