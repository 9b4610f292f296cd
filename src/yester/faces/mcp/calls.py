"""What the tools of the MCP server do: arguments in, text for a model out.

    search            an index: one row for each hit, with its id and what reading it whole costs
    timeline          what happened before and after one of them
    get_observations  some of them whole
    save_memory       something to be kept
    __IMPORTANT       how the three belong together

Models write "5" for 5, "12, 13" for [12, 13], null for nothing; that is understood. Everything else
that does not fit is an error that names the parameter, the value and what would be right.

The tools have a memory of their own: with the user's switches, and a ledger of what was answered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from yester.agents.descriptors import detect_agent, detect_session
from yester.capture.homes import home_folder
from yester.capture.rules import is_off_here, load_rules
from yester.context.lines import one_line, quote_lines, replace_quotes
from yester.errors import NotFound, UsageError, YesterError
from yester.faces.mcp.text import MARK, Page, hit_row, item_heading, session_row, whole_item
from yester.memory import Memory, ask_recall
from yester.model import ON_REQUEST, RUNNING, WHOLE, Filters, Hit, Injection, Item, replace
from yester.operations import fields, search
from yester.operations.files import LinesRequest, explain_lines, history_lines, names_file
from yester.operations.items import find_summary, record_fetched
from yester.operations.memories import SaveRequest, save_memory
from yester.operations.request import NoRequest, Request, make_filters, make_request
from yester.redact import redact
from yester.tables import load_table
from yester.text.document import estimate_tokens
from yester.text.terms import query_terms

if TYPE_CHECKING:
    from yester.memory import AskWorker

_LONGEST_QUERY = 4_000  # characters; of a log that somebody pasted, the beginning will do
_NAMED = 10  # ids in a last line
_IDENTITY = re.compile(r"#?(?P<id>\d{1,15})(?:@(?P<start>\d{1,9}))?")
_SEPARATORS = re.compile(r"[\s,]+")
_PATIENCE_TO_WRITE = 0.03  # seconds; the next question may be waiting
_MOST_OWED = 500  # lines that are still to be written down

_WORDS: Mapping[str, str] = load_table("mcp")
WORKFLOW = _WORDS["workflow"]


class ReadRequest(Request, kw_only=True):
    """Items, each with the character from which it is wanted: see `parse_ids`."""

    ids: Any


def answer_call(
    tool: Mapping[str, Any], open_memory: Callable[[], ToolMemory], given: Mapping[str, Any]
) -> tuple[str, bool]:
    """The text for the model, and whether it tells of an error.

    A wrong argument is no error of the protocol: it is the model that can put it right.
    """
    call = _CALLS[tool["name"]]
    try:
        memory = open_memory()
        memory.check_allowed()
        request = read_request(tool, given)
        if call.reads and not memory.exists():
            return _WORDS["nothing_yet"], False
        return call.answer(memory, request), False
    except YesterError as error:
        return f"{tool['name']}: {one_line(str(error), 600)}", True


# --- arguments ---------------------------------------------------------------------------------


def read_request(tool: Mapping[str, Any], given: Mapping[str, Any]) -> Any:
    """What is there, as a request takes it that is written as text; the request checks values."""
    kind, known = _CALLS[tool["name"]].request, tool["inputSchema"]["properties"]
    defaults = {name: one["default"] for name, one in known.items() if "default" in one}
    meant = {name: value for name, value in given.items() if value is not None}
    texts = {name: _write_value(value) for name, value in {**defaults, **meant}.items()}
    if isinstance(query := texts.get("query"), str):
        texts["query"] = query[:_LONGEST_QUERY]
    return make_request(kind, texts, {}, names=known)


def _write_value(value: Any) -> Any:
    """Numbers and texts as text; what is neither is for the request to refuse."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode().strip()  # half a surrogate pair is no text
    return value


def parse_ids(written: Any) -> list[tuple[int, int]]:
    """Ids, each with the character from which it is wanted: 12, "12", "#12", "12@3800"."""
    text = written.strip(" []") if isinstance(written, str) else written
    words = _SEPARATORS.split(text) if isinstance(text, str) else text
    found: dict[tuple[int, int], None] = {}
    for word in words if isinstance(words, list) else [words]:
        match = _IDENTITY.fullmatch(str(word))
        if match is None:
            raise UsageError(
                f"ids has {word!r:.80}, but must be numbers as search shows them, such as [12, 13]"
            )
        found[int(match["id"]), int(match["start"] or 0)] = None
    if not found or len(found) > fields.MOST_IDS:
        raise UsageError(f"ids has {len(found)} entries, but must have from 1 to {fields.MOST_IDS}")
    return list(found)


# --- search ------------------------------------------------------------------------------------


def search_memory(memory: ToolMemory, request: search.EverythingSearch) -> str:
    if request.types:
        memory.check_names(Filters(types=tuple(request.types)))
    # The store is not opened yet: a worker may have it open.
    found = search.find_matches(memory, request)
    query, offset, terms = request.query, request.offset, query_terms(request.query)
    rows: list[tuple[Hit | None, str]] = [(hit, hit_row(hit, terms)) for hit in found.hits]
    for session, hit in found.sessions:
        summary = find_summary(memory.reading, session)
        name = memory.project_names().get(session.project, session.project)
        named = replace(session, project=name)
        rows.append((hit, session_row(named, hit, terms, summary.id if summary else 0)))
    words = f'for "{replace_quotes(one_line(query, 120))}"' if query else ""
    if not rows:
        what = f"{request.what or 'items'} {words}".rstrip()
        if found.answer and found.answer.reach:
            return f"No {what}: nothing has any of these words. What is near in meaning: near=true."
        beyond = f"No more {what} beyond offset {offset}."
        return beyond if offset else _WORDS["nothing_found"].format(what=what)
    where = "this project" if found.filters.projects else "all projects"
    if request.project:
        where = replace_quotes(one_line(request.project, 60))
    columns = _WORDS["session_columns" if found.sessions else "columns"]
    how = words or ("oldest first" if request.order == "date_asc" else "newest first")
    note = f" {found.note[0].upper()}{found.note[1:]}." if found.note else ""
    page = Page(f"search {query}", f"{len(rows)} {how} in {where}. {columns}{note}")
    fitting = page.add_rows([row for _, row in rows])
    left = len(rows) - fitting
    memory.note_shown("search", rows[:fitting])
    following = f"offset={offset + fitting}"
    return page.finish_page(
        f"{left} more not shown: call search again with {following}." if left
        else f"There may be more: {following}." if found.more else "",
        _WORDS["session_next" if found.sessions else "next"],
    )  # fmt: skip


# --- timeline ----------------------------------------------------------------------------------


def show_timeline(memory: ToolMemory, request: search.TimelineRequest) -> str:
    anchor, query = request.anchor, request.query
    if not (anchor or query):
        raise UsageError(_WORDS["no_anchor"])
    if names_file(memory, anchor):
        return _explain_file(memory, request)
    filters = memory.narrow_filters(make_filters(memory, request), query)
    found = search.find_neighbours(memory, anchor, request.before, request.after, filters, query)
    if not len(found):
        return "Nothing is recorded around it."
    page = Page("timeline", f"Oldest first; {MARK} is the anchor. {_WORDS['columns']}")
    shown: list[tuple[Hit, str]] = []

    def add_hit(hit: Hit, mark: str = "", first: bool = False) -> bool:
        row = hit_row(hit, (), clock=True, mark=mark)
        if fits := page.add_row(row, first):
            shown.append((hit, row))
        return fits

    if found.anchor is not None:
        add_hit(found.anchor, f"{MARK} ")
        if anchor.removeprefix("#") == str(found.anchor.id):
            # Asked for by its id; its neighbours only came along.
            memory.note_reading(found.anchor.id)
    earlier, later = found.before[::-1], found.after
    shown_before = shown_after = 0
    # From the anchor outwards, so that what is left out is what is farthest.
    for step in range(max(len(earlier), len(later))):
        if step < len(later) and shown_after == step:
            shown_after += add_hit(later[step])
        if step < len(earlier) and shown_before == step:
            shown_before += add_hit(earlier[step], first=True)
    memory.note_shown("timeline", shown)
    return page.finish_page(
        _describe_rest("earlier", earlier, shown_before, "depth_after=0"),
        _describe_rest("later", later, shown_after, "depth_before=0"),
        "Whole: get_observations(ids=[…]).",
    )


def _explain_file(memory: ToolMemory, request: search.TimelineRequest) -> str:
    """Who wrote a file's lines, and why."""
    found = explain_lines(memory, LinesRequest(file=request.anchor, project=request.project))
    page = Page("timeline", f"Who wrote {replace_quotes(one_line(found.file, 120))}, by line:")
    lines = list(history_lines(found))
    left = len(lines) - page.add_rows(lines)
    text = "\n".join(lines[: len(lines) - left])
    told = {one.id: one.line for one in found.turns if one.line in text}
    memory.note_shown("timeline", [(one, told[one.id]) for one in memory.store.get(list(told))])
    more = f"{left} lines not shown: ask for fewer, FILE:FIRST-LAST." if left else ""
    return page.finish_page(more, "Whole: get_observations(ids=[…]).")


def _describe_rest(which: str, hits: tuple[Hit, ...], shown: int, depth: str) -> str:
    """What does not fit; the hits are counted from the anchor outwards."""
    if shown == len(hits):
        return ""
    farthest = hits[shown - 1].id if shown else "ID"
    left = f"{len(hits) - shown} {which} not shown"
    return f"{left}: call timeline with anchor={farthest}, {depth}."


# --- whole items -------------------------------------------------------------------------------


def get_observations(memory: ToolMemory, request: ReadRequest) -> str:
    wanted = parse_ids(request.ids)
    names = memory.project_names()
    items = {item.id: item for item in memory.get_items([id_ for id_, _ in wanted])}
    missing = _join_first([f"#{id_}" for id_, _ in wanted if id_ not in items])
    if not items:
        raise NotFound(f"ids: no item {missing}; search shows ids")
    unknown = f"There is no {missing}; search shows ids." if missing else ""
    present = [(items[id_], start) for id_, start in wanted if id_ in items]
    page = Page("items", "Items as they were recorded.")
    for number, (item, start) in enumerate(present):
        head = item_heading(item, names.get(item.project, item.project))
        text = whole_item(item)[start:]
        if start:
            head += f", from character {start:,} on"
        if page.add_row(f"{head}\n{quote_lines(text)}"):
            _note_whole(memory, item, text)
            continue
        waiting = [str(one.id) for one, _ in present[number:]]
        if number:
            again = f"call get_observations with ids=[{_join_first(waiting)}]"
            return page.finish_page(f"{len(waiting)} more not shown: {again}.", unknown)
        # Larger than an answer: its beginning, and how to go on.
        shown = page.add_beginning(head, text)
        _note_whole(memory, item, shown)
        rest = f'ids=["{item.id}@{start + len(shown)}"]'
        more = f"Not shown yet: ids=[{_join_first(waiting[1:])}]." if waiting[1:] else ""
        left = f"{len(text) - len(shown):,} characters of #{item.id} are left: {rest}."
        return page.finish_page(left, more, unknown)
    return page.finish_page(unknown)


def _note_whole(memory: ToolMemory, item: Item, text: str) -> None:
    memory.note_reading(item.id)
    memory.note_shown(WHOLE, [(item, text)])


def _join_first(ids: list[str]) -> str:
    """A list that may be long, as the end of an answer has room for it."""
    return ", ".join(ids[:_NAMED]) + (", …" if len(ids) > _NAMED else "")


# --- something to be kept ----------------------------------------------------------------------


def keep_memory(memory: ToolMemory, request: SaveRequest) -> str:
    here, name = memory.current_project, request.project
    place = here if not name or name in (here.name, here.key) else memory.find_project(name)
    saved = save_memory(memory, request, place)
    where = f"in project {one_line(saved.project, 60)}"
    if not saved.new:
        return f"Known already {where}: #{saved.id}. Nothing was changed."
    hidden = " Secrets in it were left out." if redact(request.text) != request.text else ""
    return f"Saved {where}: #{saved.id}.{hidden}"


class _Call(NamedTuple):
    request: type[Request]
    answer: Callable[[ToolMemory, Any], str]
    reads: bool = True  # what is recorded, of which there may be nothing yet


_CALLS: Mapping[str, _Call] = {
    "__IMPORTANT": _Call(NoRequest, lambda *_: WORKFLOW, reads=False),
    "search": _Call(search.EverythingSearch, search_memory),
    "timeline": _Call(search.TimelineRequest, show_timeline),
    "get_observations": _Call(ReadRequest, get_observations),
    "save_memory": _Call(SaveRequest, keep_memory, reads=False),
}

# --- the memory of the tools -------------------------------------------------------------------


def open_for_tools(
    home: str | None, cwd: str, environ: Mapping[str, str], ask_worker: AskWorker = ask_recall
) -> ToolMemory:
    """The memory for a client that has started us in `cwd`."""
    folder = home_folder(home, environ, Path(cwd), inside_agent=True)
    return ToolMemory(folder, environ, cwd=cwd, who="mcp", origin="agent", ask_worker=ask_worker)


class ToolMemory(Memory):
    # Until they are written down, when the session is known.
    _listed: tuple[Injection, ...] = ()
    _read: tuple[int, ...] = ()

    def release_unused(self, now: float | None = None) -> bool:
        """Give the memory back as well: it is most of what we have."""
        held = super().release_unused(now)
        if held:
            import ctypes

            trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc keeps what was freed
            if trim is not None:
                trim(0)
        return held

    def close(self) -> None:
        self.write_notes()
        super().close()

    def narrow_filters(self, filters: Filters, query: str) -> Filters:
        """Without the session that asks, which knows what was said in it: the one its client names,
        else the one that goes on in this project."""
        narrowed = super().narrow_filters(filters, query)
        asking = detect_session(self.environ)[0] or RUNNING + detect_agent(self.environ)
        return replace(narrowed, without_session="" if filters.session else asking)

    def check_allowed(self) -> None:
        """Raises where the user has switched yester off for this place or session."""
        session = self.environ.get("CLAUDE_CODE_SESSION_ID", "")
        off = load_rules(self.config).is_off(self.cwd, session, self.now)
        if off or is_off_here(self.environ):
            raise UsageError(_WORDS["off"])

    # --- what was shown --------------------------------------------------------------------------

    def note_shown(self, why: str, lines: Iterable[tuple[Hit | Item | None, str]]) -> None:
        """An answer has these lines, each of them about something."""
        self._listed += tuple(
            Injection(
                0, ON_REQUEST, one.id, one.score if isinstance(one, Hit) else 0.0,
                estimate_tokens(text), self.now, why,
            )
            for one, text in lines
            if one
        )  # fmt: skip

    def note_reading(self, item: int) -> None:
        """Somebody wants more of this than a line."""
        self._read += (item,)

    def write_notes(self) -> None:
        """Write down what was listed and read. Called when the answer is out: nobody waits for it,
        and where it cannot be written (another writer, a full disk) the next answer tries again."""
        store = self._store
        if store is None or not (self._listed or self._read):
            return
        try:
            key, agent = detect_session(self.environ)
            session = store.session(key, agent) if key else None
            number, prompt = (session.id, session.prompts) if session else (0, 0)
            lines = [replace(one, session=number, prompt_number=prompt) for one in self._listed]
            with store.transaction("ledger", patience=_PATIENCE_TO_WRITE):
                store.append(lines)
        except (YesterError, OSError):
            self._listed = self._listed[-_MOST_OWED:]
            return
        # Lines come first: what was listed in one answer may be read in the next.
        record_fetched(store, self._read, self.now, number)
        self._listed, self._read = (), ()
