"""The words that the fields of requests are made of: types with their limits."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from yester.model import KINDS

MOST_IDS = 100
LARGEST = 2**53 - 1  # what every JSON reader can count to

Kind = Literal["message", "prompt", "observation", "summary", "memory", "note"]
Form = Literal["index", "full"]
assert set(Kind.__args__) == set(KINDS)  # type: ignore[attr-defined]


def _text_form(name: str, most: int, **limits: Any) -> Meta:
    """Of a text that has a form of its own."""
    return Meta(max_length=most, extra_json_schema={"format": f"yester-{name}"}, **limits)


Name = Annotated[str, Meta(max_length=400)]
GivenName = Annotated[str, Meta(min_length=1, max_length=400)]
# Of a list that is written with commas nobody can tell later where a comma was meant as such: any
# text is one, and the length of a request's head is the limit.
Names = list[str]
Text = Annotated[str, Meta(max_length=4_000)]
GivenText = Annotated[str, Meta(min_length=1, max_length=4_000)]
Since = Annotated[str, _text_form("since", 40)]
Until = Annotated[str, _text_form("until", 40)]
Range = Annotated[str, _text_form("range", 200)]
Folder = Annotated[str, _text_form("folder", 4_000, pattern=r"^(/[^\x00]*)?$")]
Id = Annotated[int, Meta(ge=1, le=LARGEST)]
Number = Annotated[int, Meta(ge=0, le=LARGEST)]
Count = Annotated[int, Meta(description="At most so many.", ge=1, le=100)]
Offset = Annotated[int, Meta(description="Leave out the first ones.", ge=0, le=1_000_000)]
Shape = Annotated[
    Form, Meta(description="index: a row each, ~75 tokens; full: everything, so ask for few.")
]
ProjectName = Annotated[Name, Meta(description="Only this project, by its name or key.")]
AgentName = Annotated[Name, Meta(description="Only this agent, e.g. claude-code.")]
Kinds = Annotated[list[Kind], Meta(description="Only these kinds.")]
