"""Sessions that have ended, written down in files that people and agents read.

They stand beside what the agent itself keeps of the project (Claude Code's `memory/sessions/`),
else in `archive/PROJECT/` of yester's home: a file a day, to which a block is added in one write.

    ## Session 1f3a9c2e (17:40)

    - Decision: Use Postgres for the ledger
    - Bug: The total of the cart was wrong: counts were compared as text
    - Failed: rtk bun run test fails: unrecognized subcommand 'bun'
    - Lesson: The importer writes counts as text

Blocks are added and never edited, except by `forget` and `redact`; a session that goes on later
gets another one with what is new.
What stands in one came from the store, so it is not indexed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from hashlib import blake2b
from pathlib import Path

from yester.cards import QUIET
from yester.cards.drafts import WARNING
from yester.cards.turns import BRIEF_CHARS, BRIEF_TOOLS, distilled_items
from yester.clock import DAY
from yester.config import Config
from yester.errors import SourceError
from yester.files import append_shared, make_folder, read_shared, swap_shared
from yester.llm import questions
from yester.llm.budget import Asker
from yester.memories.memory_md import memory_paths
from yester.model import Archived, Item, Queue, Session, Waiting
from yester.store.contract import Store
from yester.text.sentences import clean_text, one_line
from yester.text.statements import title_words, word_overlap

LATELY = DAY  # what ended before is no news
LABELS: Mapping[str, str] = {
    "decisions": "Decision", "bugs": "Bug", "failed": "Failed", "lessons": "Lesson",
}  # fmt: skip
_LESSONS = frozenset({"gotcha", "problem-solution", "how-it-works", "trade-off"})
_CHARS, _FACT_CHARS, _MOST = 300, 200, 12  # of a line, of the fact in it; lines of a kind
_SAME = 0.7
_HEADING = re.compile(r"Session ([0-9a-f]{8}) \(\d\d:\d\d\)")
_HEX = re.compile(r"[0-9a-f]{8}")
_SETTLED = 3_000  # ms after a session's end within which its transcript may still grow
_AGENT = "claude-code"
_PAGE = 400


class Lines(questions.Headed, frozen=True):
    """What is worth keeping of a session, by its kind."""

    decisions: tuple[str, ...] = ()
    bugs: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    lessons: tuple[str, ...] = ()


def short_key(session: str) -> str:
    """Eight hexadecimal digits for a session: its first ones, where it has such."""
    if _HEX.match(session):
        return session[:8]
    return blake2b(session.encode("utf-8", "replace"), digest_size=4).hexdigest()


def is_archive_heading(heading: str) -> bool:
    """Is this a heading of a block of ours?"""
    return _HEADING.fullmatch(heading.strip()) is not None


def lines_of(items: Iterable[Item]) -> Lines:
    """What was distilled from a session, as lines."""
    kept: dict[str, list[str]] = {name: [] for name in LABELS}
    for item in items:
        if item.kind == "observation" and (kind := _line_kind(item)):
            kept[kind].append(_line_text(item))
    return Lines(**{name: tuple(dict.fromkeys(texts))[:_MOST] for name, texts in kept.items()})


def _line_kind(item: Item) -> str:
    if WARNING in item.tags:
        return "failed"
    if item.type == "decision":
        return "decisions"
    if item.type == "bugfix":
        return "bugs"
    lesson = item.type == "discovery" or _LESSONS.intersection(item.concepts)
    return "lessons" if lesson else ""


def _line_text(item: Item) -> str:
    title = one_line(item.title, _CHARS - _FACT_CHARS).rstrip(".")
    own = title_words(title)
    fact = next((text for text in item.facts if word_overlap(own, title_words(text)) < _SAME), "")
    return f"{title}: {one_line(fact, _FACT_CHARS)}" if fact else title


def check_lines(answer: str, given: str) -> Lines:
    """A model's lines as far as what was said bears them out; Malformed where nothing does."""
    evidence = questions.Evidence.of_texts(clean_text(given))

    def keep_lines(texts: Sequence[str]) -> tuple[str, ...]:
        return evidence.keep_lines(texts[: 2 * _MOST], questions.FACT_SHARE, _CHARS)[:_MOST]

    return questions.check_headed(answer, Lines, keep_lines)


def new_block(before: str, session: str, when: datetime, lines: Lines) -> str:
    """The block to be added to a file for a session that ended then: what does not stand there
    under its name already; "" where all does."""
    name = short_key(session)
    own = (block for other, block in _split_blocks(before) if other == name)
    known = {line.rstrip() for block in own for line in block.splitlines()}
    told = [
        bullet
        for kind, label in LABELS.items()
        for text in getattr(lines, kind)
        if (bullet := f"- {label}: {text}") not in known
    ]
    if not told:
        return ""
    gap = "" if not before else "\n" if before.endswith("\n") else "\n\n"
    return f"{gap}## Session {name} ({when:%H:%M})\n\n" + "\n".join(told) + "\n"


# --- sessions ------------------------------------------------------------------------------------


def find_unarchived(store: Store, now: int) -> list[Waiting]:
    """Sessions that are over and of which the archive does not have the end; `since` is up to when
    it has them."""
    return store.queued_sessions(
        Queue("archive", since=now - LATELY, ended_before=now - _SETTLED, quiet_since=now - QUIET)
    )


def archive_session(
    store: Store, config: Config, waiting: Waiting, asker: Asker | None, now: int
) -> tuple[Path | None, str]:
    """Add what is new of a session to its file; the file, None where nothing was worth it, and why
    a language model that was asked did not write it. SourceError where it cannot be written."""
    session = waiting.session
    new = [item for item in distilled_items(store, session.id) if item.epoch > waiting.since]
    lines, reason = lines_of(new), ""
    if lines and asker is not None:
        lines, reason = _ask_for_lines(store, config, waiting, asker, lines)
    path = None
    if lines:
        when = datetime.fromtimestamp(session.ended / 1000).astimezone()
        path = _archive_folder(store, config, session) / f"{when:%Y-%m-%d}.md"

        def block(before: bytes) -> bytes:
            text = new_block(before.decode("utf-8", "replace"), session.key, when, lines)
            return text.encode("utf-8", "replace")

        append_shared(path, block)
    with store.transaction("ledger"):
        store.append([Archived(session.id, session.ended, now)])
    return path, reason


def _ask_for_lines(
    store: Store, config: Config, waiting: Waiting, asker: Asker, lines: Lines
) -> tuple[Lines, str]:
    """A model's lines for the last messages, or those that were found and the reason."""
    messages: list[Item] = []
    most = config.number("archive.messages")
    after = (waiting.since, 0)
    while page := store.history(waiting.session.id, BRIEF_TOOLS, BRIEF_CHARS, after, _PAGE):
        after = (page[-1][0].epoch, page[-1][0].id)
        said = [item for item, _ in page if not item.actor and item.role in ("user", "assistant")]
        messages = [*messages, *said][-most:]
    who = {"user": "User", "assistant": "Agent"}
    text = "\n\n".join(f"{who[item.role]}: {item.body}" for item in messages)
    prompt = questions.make_prompt(
        "archive", Lines, questions.cut_middle(clean_text(text), questions.MOST_TURN)
    )
    given = "\n\n".join(item.body for item in messages)
    answer = asker.ask(prompt, partial(check_lines, given=given))
    if answer.value is None:
        return lines, answer.reason
    return answer.value or lines, ""


def _archive_folder(store: Store, config: Config, session: Session) -> Path:
    if session.agent == _AGENT and session.cwd:
        configs = [Path(text).expanduser() for text in config.texts("claude_code_dirs")]
        for place in memory_paths(configs, Path(session.cwd)):
            if place.parent.parent.is_dir():
                return make_folder(place.parent.parent, f"{place.parent.name}/sessions")
    names = {project.key: project.name for project in store.projects()}
    name = re.sub(r"[^\w.-]+", "-", names.get(session.project) or session.project).strip("-.")
    return make_folder(config.home, f"archive/{name[:80] or 'project'}")


# --- what is taken out of them -------------------------------------------------------------------


def edit_archives(config: Config, change: Callable[[str, str], str]) -> list[Path]:
    """Change blocks of ours, wherever they stand: `change` is given the session's short name and a
    block, and "" takes it out. What others have written in these files stays as it is. The files
    that were changed; one that nothing is left of goes."""
    folders = [Path(text).expanduser() for text in config.texts("claude_code_dirs")]
    found = [*config.home.glob("archive/*/*.md")]
    for folder in folders:
        found += folder.glob("projects/*/memory/sessions/*.md")
    changed = []
    for path in sorted(found):
        before = read_shared(path)
        text = (before or b"").decode("utf-8", "surrogateescape")
        after = "".join(
            change(name, block) if name else block for name, block in _split_blocks(text)
        )
        if after != text:
            data = after.encode("utf-8", "surrogateescape") if after.strip() else None
            if not swap_shared(path, data, before):
                raise SourceError(f"{path}: somebody else has just written to it; try again")
            changed.append(path)
    return changed


def _split_blocks(text: str) -> Iterator[tuple[str, str]]:
    """A file's blocks, each with its session's short name; "" for what is not ours."""
    name, lines = "", list[str]()
    for line in text.splitlines(keepends=True):
        if line.startswith("## "):
            yield name, "".join(lines)
            heading = _HEADING.fullmatch(line[3:].strip())
            name, lines = heading[1] if heading else "", []
        lines.append(line)
    yield name, "".join(lines)
