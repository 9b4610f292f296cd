"""An item reads the same and costs the same, whichever face shows it."""

from __future__ import annotations

import re

import pytest

from tests.serving import serving
from yester.faces.mcp.text import item_heading
from yester.ingest.prepare import prepare_item
from yester.model import DISTILLED, Item, Project
from yester.text.document import reading_cost

SHOP = Project("name:shop", "shop")
# Most observations have no text of their own: a title, facts and sections.
FOUND = Item(
    "1", "observation", project=SHOP.key, source=DISTILLED, type="bugfix", epoch=1_772_366_400_000,
    title="Lagerbestände werden über eine Zwischentabelle eingelesen", subtitle="70 s statt 40 min",
    facts=("COPY into a staging table, then one MERGE.", "在庫の索引が遅かった。"),
    sections={"outcome": "`pytest` ended with status 0"},
)  # fmt: skip


@pytest.mark.requirement("DEL-05", "DEL-07")
def test_every_face_has_the_same_text_and_price_for_an_item(memory, home, run):
    with memory.store.transaction("items"):
        memory.store.put_project(SHOP)
        memory.store.put([prepare_item(FOUND)])
    (hit,) = memory.recall("staging table", k=1)
    (item,) = memory.store.get([hit.id])
    with serving(home) as api:
        (searched,) = api.get("/api/search", query="staging table", format="full")["results"]
        (listed,) = api.get("/api/items", format="full")["results"]
    assert searched["narrative"] == listed["narrative"] == hit.text != ""

    printed = run("recall", "staging table").out
    prices = {
        reading_cost(hit), reading_cost(item), searched["tokens"], listed["tokens"],
        searched["read_tokens"], int(re.findall(r"~(\d+)t", printed)[0]),
        int(re.findall(r"~(\d+)t to read", item_heading(item, "shop"))[0]),
    }  # fmt: skip
    assert len(prices) == 1
