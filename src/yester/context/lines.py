"""Items as lines for a model: whose words, of which day, what they are.

Everything shown is somebody's words of another day, and stands in quotation marks. No line is
without who said it or what it is, and nothing in it can leave its line, hide from a reader or pass
for a tag. Everything is quoted, whatever it says: no table knows every way to give an order, and a
label that guesses at one is wrong about decisions and commit subjects.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from yester.clock import Calendar
from yester.model import Hit, Item, sharer_of
from yester.project import bare_project
from yester.tables import load_pattern
from yester.text.edits import is_prose
from yester.text.sentences import clean_text as clean_text
from yester.text.sentences import clean_texts, shorten_text
from yester.text.sentences import one_line as one_line

ESTIMATE_NOTE = (
    "Tokens are estimates (four characters each). Discovery is what sessions read and wrote to "
    "find something out. It is not what you save: nobody would look all of it up again."
)
OPEN, CLOSE = "“", "”"
_INNER_QUOTES = str.maketrans(dict.fromkeys("“”„‟〝〞", '"'))
TITLE, NAME, PATH, _WHY = 100, 40, 60, 240  # characters
_FILES = 2  # named in a line
_ABSOLUTE = re.compile(r"/|[A-Za-z]:")
_OTHER_TREE = re.compile(r"\A.*\bworktrees/[^/]+/")  # is gone sooner than the file
_STALE = 100
SPEAKERS = {
    "user": "user", "assistant": "agent", "thinking": "agent (thinking)", "task": "agent (task)",
}  # fmt: skip
# A sign for each type of observation, else for each kind: what was kept on purpose is a star.
ICONS: Mapping[str, str] = {
    "decision": "◆", "bugfix": "✔", "feature": "✚", "refactor": "↻", "change": "△",
    "discovery": "○", "prompt": "❯", "message": "·", "note": "▤", "summary": "Σ",
    "observation": "●", "memory": "★",
}  # fmt: skip


def quote_text(text: str) -> str:
    """On our own line: nothing in it closes the quotation but we."""
    return f"{OPEN}{replace_quotes(text)}{CLOSE}" if text else "(empty)"


def replace_quotes(text: str) -> str:
    """With no quotation marks like ours: for names and paths that stand outside of any."""
    return text.translate(_INNER_QUOTES)


def quote_name(text: str) -> str:
    """A project, a tool, a type: one that could be a sentence is quoted as one. Some scripts have
    no spaces, so whatever is not ASCII could be."""
    return quote_text(text) if " " in text or not text.isascii() else replace_quotes(text)


def quote_lines(text: str) -> str:
    """Whole, line by line: each with the mark of a quotation, so that none can pass for ours."""
    return "\n".join(f"> {one}" for one in text.split("\n"))


def item_icon(kind: str, type_: str = "") -> str:
    return ICONS.get(type_ if kind == "observation" and type_ in ICONS else kind, "·")


def short_name(text: str) -> str:
    """Of a project, a tool, a type, on one line."""
    return quote_name(one_line(text, NAME))


def join_title(title: str, text: str) -> str:
    title = one_line(title, TITLE)
    if not title or text.lstrip("# ").startswith(title.rstrip("…")):
        return text
    return f"{title}: {text}" if text else title


def speaker_of(one: Item | Hit) -> str:
    """Whose words: user, agent, a tool's; "" where nobody has said them."""
    if one.role == "tool":
        return short_name(one.tool) or "tool"
    if one.role == "user" and origin_text(one):  # not the user who reads it
        return ""
    return SPEAKERS.get(one.role, "")


def origin_text(one: Item | Hit) -> str:
    """` [from: kim/shop]`: who of a team has shared it; "" where it is this store's own."""
    user = sharer_of(one) if isinstance(one, Item) else one.sharer
    project = bare_project(one.project).name if isinstance(one, Item) else one.project
    return f" [from: {short_name(user)}/{short_name(project)}]" if user else ""


def item_line(one: Item | Hit, calendar: Calendar, text: str, more: str = "") -> str:
    """`#12 user, 12 Nov: “…”`"""
    more = origin_text(one) or more
    who = ", ".join(filter(None, (speaker_of(one), item_type(one)))) or one.kind
    epoch = one.epoch if isinstance(one, Item) else int(one.epoch * 1000)
    return f"#{one.id} {who}, {calendar.day_label(epoch)}{more}: {quote_text(text)}"


def hit_line(hit: Hit, calendar: Calendar, text: str, origin: str = "") -> str:
    """The same for what was looked for, with what has happened to its files since."""
    return item_line(hit, calendar, text, origin) + stale_text(hit)


def stale_text(hit: Hit) -> str:
    return f" ({replace_quotes(one_line(hit.stale, _STALE))})" if hit.stale else ""


def card_status(card: Item) -> str:
    """The word for what came of a turn; "" where nobody has judged it (another program, an earlier
    version)."""
    return card.subtitle.partition(":")[0] if card.kind == "summary" else ""


def card_line(
    card: Item,
    calendar: Calendar,
    why: str = "",
    origin: str = "",
    dated: bool = True,
    names: Sequence[str] = (),
    most: int = _WHY,
) -> str:
    """`45 done: “One connection per call” “It drops idle connections.” (client.py, `pytest` 9
    passed, 2 Nov; names EnsureSetup)`: a turn, what came of it, and why; and where it was found,
    the names that the prompt has, too."""
    word, _, evidence = card.subtitle.partition(": ")
    origin = origin_text(card) or origin
    label = f" {word}" if word else ""
    if word == "changed" and not evidence.startswith("only "):
        label += ", not verified"
    edited = name_places(sorted(card.files_modified, key=_says_little)[:_FILES])
    said = (card.title or card.sections.get("request", ""), why or card.body, evidence)
    title, why, evidence, *rest = clean_texts((*said, *edited, *names[:_FILES]))
    title, why = shorten_text(title, TITLE), shorten_text(why, most)
    if why.replace("`", "").startswith(title.rstrip("…")[:40]):  # the title is its beginning
        title, why = max(title, why, key=len), ""
    reason = f" {quote_text(why)}" if why else ""
    short = [quote_name(shorten_text(name, PATH)) for name in rest]
    evidence = evidence.removeprefix("not verified").lstrip("; ")
    proof = shorten_text(evidence, TITLE) if word != "answered" else ""
    day = calendar.day_label(card.epoch) if dated else ""
    facts = ", ".join(filter(None, (*short[: len(edited)], proof, day)))
    if shared := short[len(edited) :]:
        facts += f"; names {', '.join(shared)}"
    told = f"{card.id}{label}{origin}: {quote_text(title)}{reason}"
    return f"{told} ({facts})" if facts else told


def _says_little(file: str) -> int:
    """Tests and pages go along with code, and `.env` is seldom in a commit."""
    aside = is_prose(file) or load_pattern("tools", "test file").search(file) is not None
    return 2 if file.rpartition("/")[2].startswith(".") else int(aside)


def name_places(files: Sequence[str]) -> list[str]:
    """Where files are: the ends of long paths, and of a second file of a folder its name."""
    told: list[str] = []
    folders: set[str] = set()
    for file in (_OTHER_TREE.sub("", file) for file in files):
        folder, _, name = file.rpartition("/")
        most = NAME if _ABSOLUTE.match(file) else PATH  # outside of the project, as far as is known
        while len(file) > most and "/" in file:
            file = file.partition("/")[2]
        told.append(name if folder in folders else file)
        folders.add(folder)
    return told


def item_type(one: Item | Hit) -> str:
    """plan, todo, decision, summary …; talk needs no name."""
    if one.kind in ("message", "prompt"):
        return ""
    return one.kind if one.kind == "summary" else short_name(one.type) or one.kind
