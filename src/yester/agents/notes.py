"""The notes that clients keep and load by themselves: where they are, and who has them before its
eyes. They are read and never written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from yester.agents.base import list_folders
from yester.agents.descriptors import AGENTS, CLAUDE_CODE, Agent
from yester.config import Config

EVERYWHERE = "*"  # in place of a folder: a note is about no project


def list_note_files(config: Config, roots: Iterable[str]) -> Iterator[tuple[Path, str]]:
    """Every file of notes with the folder it is about: those of the agents themselves, and what
    repositories tell any of them. "" is to be found out by the file's own place."""
    found: dict[Path, str] = {}
    for agent in AGENTS.values():
        for folder in list_folders(agent, config) if agent.notes or agent.loads else ():
            for path in _find_files(folder, (*agent.notes, *agent.loads)):
                about_project = path.relative_to(folder).parts[0] == "projects"
                found[path] = "" if about_project else EVERYWHERE
    for root in roots:
        found |= dict.fromkeys(find_instructions(Path(root)), root)
    yield from found.items()


def find_instructions(root: Path) -> list[Path]:
    """What a repository tells the agents that work in it."""
    patterns = dict.fromkeys(pattern for agent in AGENTS.values() for pattern in agent.loads)
    return [path for path in _find_files(root, patterns) if path.is_file()]


def _find_files(folder: Path, patterns: Iterable[str]) -> Iterator[Path]:
    for pattern in patterns:
        yield from sorted(folder.glob(pattern))


def note_owner(path: str) -> str:
    """The agent whose notes these are; the first that loads them, where several do."""
    return next((one.name for one in AGENTS.values() if _matches(one, path)), CLAUDE_CODE.name)


def loads_itself(client: str, ref: str) -> bool:
    """Has this client a note (PATH#NAME) before its eyes anyway? One that is not known is taken for
    Claude Code."""
    return _matches(AGENTS.get(client, CLAUDE_CODE), ref.rpartition("#")[0], own=False)


def _matches(agent: Agent, path: str, own: bool = True) -> bool:
    patterns = (*agent.loads, *(agent.notes if own else ()))
    return any(fnmatchcase(path, f"*/{pattern}") for pattern in patterns)
