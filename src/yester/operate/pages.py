"""What is remembered as pages for people: Markdown by project and month, a session as one HTML
page, and a project's decisions and rules as a section of AGENTS.md or CLAUDE.md.

What was recorded may hold anything. On a page it is a quotation: no line of it is a heading, a mark
of ours or a tag, and nothing of it hides from a reader.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from string import Template

from yester.cards.tools import call_title
from yester.clock import format_day, format_iso, format_minute
from yester.errors import SourceError
from yester.fence import strip_hidden
from yester.files import make_folder, replace_file
from yester.memories.memory import GLOBAL
from yester.memories.rules import list_rules
from yester.model import DISTILLED, Filters, Item, Project, Session, replace
from yester.redact import redact
from yester.store import walk_items
from yester.store.contract import Store
from yester.text.document import item_text
from yester.text.sentences import one_line

_KINDS = ("observation", "summary", "memory", "note")  # what is told, not what was said
_ACTIVE = ("active",)
_NOT_IN_A_NAME = re.compile(r"[^\w.+ -]+")
_TITLE, _LINE = 120, 400  # characters


# --- Markdown ------------------------------------------------------------------------------------


def write_markdown(store: Store, folder: Path, projects: Iterable[Project]) -> Iterator[Path]:
    """A file for each project and month in FOLDER/PROJECT/2026-02.md, each whole or not at all."""
    for project in projects:
        name = _NOT_IN_A_NAME.sub("-", project.name).strip(". ") or "project"
        months = groupby(
            walk_items(store, Filters((project.key,), _KINDS), _ACTIVE),
            lambda item: format_day(item.epoch)[:7],
        )
        for month, items in months:
            page = "\n".join(_month_lines(project, month or "undated", list(items)))
            path = make_folder(folder, name) / f"{month or 'undated'}.md"
            replace_file(path, f"{page}\n")
            yield path


def _month_lines(project: Project, month: str, items: list[Item]) -> Iterator[str]:
    name = one_line(project.name, _TITLE).replace('"', "'")
    yield from ("---", f'project: "{name}"', f'month: "{month}"', f"items: {len(items)}")
    yield from ("tags: [yester]", "---", "", f"# {_plain_text(name)}, {month}")
    for day, of_day in groupby(_fold_turns(items), lambda item: format_day(item.epoch)):
        yield from ("", f"## {day or 'undated'}")
        for item in of_day:
            yield from _item_lines(item)


def _fold_turns(items: list[Item]) -> Iterator[Item]:
    """A turn is told once: what was observed in it stands in its card, as facts."""
    turn = attrgetter("session", "prompt_number")
    own = [item for item in items if item.source == DISTILLED and item.prompt_number]
    cards = {turn(item) for item in own if item.type == "turn"}
    facts: dict[tuple[str, int], tuple[str, ...]] = {}
    folded = {item.id for item in own if item.kind == "observation" and turn(item) in cards}
    for item in own:
        if item.id in folded:
            facts[turn(item)] = (*facts.get(turn(item), ()), *item.facts)
    for item in items:
        if item.id not in folded:
            card = item.source == DISTILLED and item.type == "turn"
            yield replace(item, facts=facts.get(turn(item), item.facts)) if card else item


def _item_lines(item: Item) -> Iterator[str]:
    title = one_line(item.title or call_title(item) or item.body, _TITLE)
    kind = item.kind if item.type in ("", item.kind) else f"{item.kind}, {item.type}"
    about = [kind, f"#{item.id}", *([f"session {item.session[:8]}"] if item.session else [])]
    about += [f"`{one_line(path, _TITLE).replace('`', '')}`" for path in item.files[:8]]
    yield from ("", f"### {_plain_text(title)}", "", f"*{' · '.join(about)}*", "")
    text = strip_hidden(redact(item_text(item)))
    facts = [f"- {one_line(one, _LINE)}" for one in dict.fromkeys(item.facts) if one not in text]
    for line in (*text.strip().splitlines(), *(["", *facts] if facts else [])):
        yield f"> {line}".rstrip()


def _plain_text(line: str) -> str:
    """A line in which Markdown has nothing to read: no link, tag, embedded file or emphasis."""
    return re.sub(r"([\\`*_{}\[\]<>#!|~])", r"\\\1", line)


# --- a session as one page -----------------------------------------------------------------------


def render_session(store: Store, session: Session, project: str) -> str:
    """All that was recorded of a session, in one file that needs no other."""
    title = one_line(session.title, _TITLE) or session.key
    about = (project, session.agent, session.branch, format_minute(session.started), session.key)
    recorded = Filters((session.project,), session=session.key, agent=session.agent, echoes=True)
    parts = map(_render_item, walk_items(store, recorded, _ACTIVE))
    values = {
        "title": _escape(title),
        "about": _escape(" · ".join(filter(None, about))),
        "items": "\n".join(parts),
    }
    page = Path(__file__).with_name("session.html").read_text("utf-8")
    return Template(page).substitute(values)


def _render_item(item: Item) -> str:
    title = one_line(item.title or call_title(item), _TITLE)
    head = " · ".join(filter(None, (item.role or item.kind, item.type, item.tool, item.actor)))
    time = f'<time datetime="{format_iso(item.epoch)}">{format_minute(item.epoch)}</time>'
    text = f"<pre>{_escape(item_text(item))}</pre>"
    if item.role in ("tool", "thinking"):
        text = f"<details><summary>{_escape(title or item.tool or item.role)}</summary>{text}"
        text += "</details>"
    elif item.title:
        text = f"<h2>{_escape(title)}</h2>{text}"
    kind = "told" if item.kind in _KINDS else item.role if item.role == "user" else ""
    about = f"<small>#{item.id} · {_escape(head)} · {time}</small>"
    return f'<article class="{kind}">{about}{text}</article>'


def _escape(text: str) -> str:
    return escape(strip_hidden(redact(text)))


# --- a section of AGENTS.md or CLAUDE.md ---------------------------------------------------------

BEGIN = (
    "<!-- yester: decisions and rules, written by `yester export section`; change them there -->"
)
END = "<!-- end of what yester wrote -->"
_HEADINGS: Mapping[str, str] = {"rule": "Rules", "decision": "Decisions", "constraint": "Limits"}


def render_section(store: Store, project: Project) -> str:
    """What holds in a project: the user's rules, what was decided, and limits. What only holds
    everywhere belongs in no repository. "" where there is nothing."""
    found = store.memos(Filters((project.key,), types=("decision", "constraint")))
    memos = [*list_rules(store, (project.key,)), *(one for one in found if one.version)]
    memos = [memo for memo in memos if memo.item.project != GLOBAL.key]
    lines = []
    for type_, heading in _HEADINGS.items():
        own = sorted(
            (one for one in memos if one.item.type == type_), key=lambda one: one.item.epoch
        )
        if own:
            lines += ["", f"### {heading}", ""]
        for memo in own:
            text = one_line("; ".join(memo.item.body.splitlines()), _LINE)
            where = f" (in {memo.path})" if memo.scope == "path" else ""
            text = text.replace("<!--", "‹!--").replace("-->", "--›")
            lines.append(f"- {text}{where} ({format_day(memo.item.epoch)})")
    return "\n".join([BEGIN, "## Decisions and rules", *lines, "", END]) if lines else ""


def place_section(text: str, section: str, path: Path) -> str:
    """The file with this section in place of the one that was there, else at its end."""
    starts, ends = text.count(BEGIN), text.count(END)
    if (starts, ends) == (0, 0):
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        return f"{text}{gap}{section}\n" if section else text
    begin, end = text.find(BEGIN), text.find(END)
    if (starts, ends) != (1, 1) or begin > end:
        raise SourceError(
            f"{path}: the marks of yester's section are not a pair; take out the lines that begin "
            "with `<!-- yester:` and `<!-- end of what yester`"
        )
    return text[:begin] + section + text[end + len(END) :]
