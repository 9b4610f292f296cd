"""The answers about memories, as `shapes` has those about everything else."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from yester.faces.http.parameters import Form
from yester.faces.http.shapes import Use

Action = Literal["edit", "retire", "archive", "restore", "supersede", "undo"]


class Memory(Struct, kw_only=True):
    """In the index form `text` is its beginning and `content` is left out."""

    id: int
    slug: str
    title: str
    type: str
    icon: str
    status: str
    scope: str
    path: Annotated[str, Meta(description="Of scope path: the files it holds for.")]
    project: str
    text: str
    content: (
        Annotated[
            dict[str, Any],
            Meta(description="By the fields of its type; left out in the index form."),
        ]
        | UnsetType
    ) = UNSET
    tags: list[str]
    files: list[str]
    confidence: float
    origin: Annotated[str, Meta(description="Whose word it is: user, agent, file, import …")]
    version: Annotated[int, Meta(description="How often it was written; PATCH wants it back.")]
    created: int
    updated: int
    since: Annotated[int, Meta(description="When its status began.")]
    reason: Annotated[str, Meta(description="Why it has its status.")]
    supersedes: Annotated[int, Meta(description="The memory it replaces, or 0.")]
    superseded_by: Annotated[int, Meta(description="The memory that replaces it, or 0.")]
    tokens: int


class Memories(Struct, kw_only=True):
    count: int
    more: bool
    format: Form
    results: list[Memory]


class Changed(Struct, kw_only=True):
    """A line of a memory's history; what was done together has one `act`."""

    id: int
    act: int
    epoch: int
    who: str
    what: str
    why: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class Field(Struct, kw_only=True):
    """Something of a memory that can be edited: part of `content`, or of the memory itself."""

    name: str
    label: str
    kind: Literal["text", "long", "list", "number", "choice"]
    choices: list[str]
    required: bool
    part: Literal["memory", "content"]


class MemoryShown(Struct, kw_only=True):
    memory: Memory
    chain: Annotated[list[Memory], Meta(description="What it replaces and is replaced by, in "
                                        "order, itself included; the oldest first.")]  # fmt: skip
    history: Annotated[list[Changed], Meta(description="The newest first.")]
    use: Use
    actions: Annotated[list[Action], Meta(description="What you can do with it now.")]
    fields: list[Field]


class Candidate(Struct, kw_only=True):
    """What would become of a text. CREATE: nothing is like it; NOOP: it is known."""

    action: Literal["CREATE", "UPDATE", "UPDATE_OR_DELETE", "NOOP"]
    match: Memory | None
    score: Annotated[int, Meta(description="3 for a tag, 2 for a word of the title, 1 alike.")]
    reasons: list[str]
    others: list[Memory]
    compared: int


class Deserving(Struct, kw_only=True):
    memory: Memory
    check: str
    text: str
    fix: str


class Review(Struct, kw_only=True):
    count: int
    findings: list[Deserving]


class MemoryWritten(Struct, kw_only=True):
    """In the stream: a memory was written, and what it is by now."""

    id: int
    status: str
    version: int
