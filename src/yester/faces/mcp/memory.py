"""The memory as the tools of the MCP server use it: with the user's switches, and a ledger of what
the answers told."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from yester.errors import UsageError, YesterError
from yester.memory import Memory, ask_recall
from yester.model import ON_REQUEST, Feedback, Injection, replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from yester.memory import AskWorker

_PATIENCE_TO_WRITE = 0.03  # seconds; the next question may be waiting
_MOST_OWED = 500  # lines that are still to be written down


def open_for_tools(
    home: str | None, cwd: str, environ: Mapping[str, str], ask_worker: AskWorker = ask_recall
) -> ToolMemory:
    """The memory for a client that has started us in `cwd`."""
    from yester.capture.homes import home_folder

    folder = home_folder(home, environ, Path(cwd), inside_agent=True)
    return ToolMemory(folder, environ, cwd=cwd, who="mcp", origin="agent", ask_worker=ask_worker)


class ToolMemory(Memory):
    # Until they are written down, when the session is known.
    _listed: tuple[Injection, ...] = ()
    _read: tuple[Feedback, ...] = ()

    def rest(self, now: float | None = None) -> bool:
        """Give the memory back as well: it is most of what we have."""
        held = super().rest(now)
        if held:
            import ctypes

            trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc keeps what was freed
            if trim is not None:
                trim(0)
        return held

    def close(self) -> None:
        self.write_notes()
        super().close()

    def check_allowed(self) -> None:
        """Raises where the user has switched yester off for this place or session."""
        from yester.capture.rules import rules

        off = self.environ.get("YESTER_OFF", "0").lower() not in ("", "0", "false")
        session = self.environ.get("CLAUDE_CODE_SESSION_ID", "")
        if off or rules(self.config).off(self.cwd, session, self.now):
            raise UsageError(
                "yester is switched off here by the user (YESTER_OFF or `yester off`; "
                "`yester off --list` shows it); go on without it"
            )

    # --- what was shown --------------------------------------------------------------------------

    def note_lines(self, why: str, lines: Iterable[tuple[int, float, int]]) -> None:
        """An answer has these lines: item, score, tokens."""
        now = self.now
        self._listed += tuple(
            Injection(0, ON_REQUEST, item, score, tokens, now, why) for item, score, tokens in lines
        )

    def note_reading(self, item: int) -> None:
        """Somebody wants more of this than a line."""
        self._read += (Feedback(item, "fetched", self.now),)

    def write_notes(self) -> None:
        """Write down what was listed and read. Called when the answer is out: nobody waits for it,
        and where it cannot be written (another writer, a full disk) the next answer tries again."""
        store = self._store
        if store is None or not (self._listed or self._read):
            return
        from yester.agents.descriptors import detect_session

        try:
            key, agent = detect_session(self.environ)
            session = store.session(key, agent) if key else None
            number, prompt = (session.id, session.prompts) if session else (0, 0)
            with store.transaction("ledger", patience=_PATIENCE_TO_WRITE):
                # Lines come first: what was listed in one answer may be read in the next.
                store.append([
                    replace(one, session=number, prompt_number=prompt) for one in self._listed
                ])  # fmt: skip
                known = store.texts([one.item for one in self._read]).used
                store.append([
                    replace(one, session=number)
                    for one in self._read
                    if (used := known.get(one.item)) and (used.shown or used.listed)
                ])  # fmt: skip
        except (YesterError, OSError):
            self._listed, self._read = self._listed[-_MOST_OWED:], self._read[-_MOST_OWED:]
            return
        self._listed, self._read = (), ()
