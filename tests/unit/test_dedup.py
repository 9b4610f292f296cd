"""When two observations are one insight."""

from __future__ import annotations

import pytest

from yester.cards.repeats import is_same_insight
from yester.model import Item

NOW = 1_790_000_000_000
MINUTE = 60_000


def observed(title: str, minutes: float = 0, file: str = "shop/prices.py") -> Item:
    return Item(
        f"turn:{minutes}", "observation", title=title, epoch=int(NOW + minutes * MINUTE),
        files_modified=(file,),
    )  # fmt: skip


@pytest.mark.requirement("DIS-06")
def test_titles_are_one_from_four_fifths_of_their_words_on():
    nouns = [f"word{letter}" for letter in "abcdefghi"]
    nine = observed(" ".join(nouns))
    assert is_same_insight(observed(" ".join([*nouns, "wordj"]), 5), nine)  # 9 of 10
    assert not is_same_insight(
        observed(" ".join([*nouns, "wordj", "wordk", "wordl"]), 5), nine
    )  # .75


@pytest.mark.requirement("DIS-06")
def test_they_are_one_within_an_hour_and_about_the_same_files():
    earlier = observed("Cache the price list in redis")
    assert is_same_insight(observed("Cache the price list in redis", 59), earlier)
    assert not is_same_insight(observed("Cache the price list in redis", 70), earlier)
    assert is_same_insight(observed("Cache the price list in redis", 51), earlier)
    other = observed("Cache the price list in redis", 5, "shop/stock.py")
    assert not is_same_insight(other, earlier)
