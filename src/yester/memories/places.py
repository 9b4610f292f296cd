"""Where Claude Code keeps what a person and the agent have written down for good.

    CONFIG/projects/SLUG/memory/MEMORY.md    the agent's own notes, loaded into every session
    CLAUDE.md, .claude/CLAUDE.md,            the project's instructions, in its folder
    CLAUDE.local.md

SLUG is the folder in which every character that is not an ASCII letter or digit has become a dash,
so several folders may share one; of a long one the beginning and a checksum are left. Work trees
and folders below a repository share the memory of its main folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from yester.project import identify_project

MEMORY = "MEMORY.md"
INSTRUCTIONS = ("CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md")
_LONGEST_SLUG = 200
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9]")


def project_slug(folder: str) -> str:
    """The name of a folder's folder; of a long one without the checksum at its end.

    JavaScript counts a character beyond the first 65,536 twice."""
    dashed = _NOT_PLAIN.sub(lambda found: "--" if found[0] > "\uffff" else "-", folder)
    return dashed[:_LONGEST_SLUG]


def matches_slug(name: str, folder: str) -> bool:
    dashed = project_slug(folder)
    return name == dashed or (len(dashed) == _LONGEST_SLUG and name.startswith(f"{dashed}-"))


def note_source(path: Path) -> str:
    """Which of the two kinds of file this is."""
    return "memory-md" if path.name == MEMORY else "claude-md"


def note_ref(path: str, name: str) -> str:
    """A note's identity: its file, and its name there."""
    return f"{path}#{name}"


def _note_file(ref: str) -> str:
    return ref.rpartition("#")[0]


def is_curated_note(ref: str) -> bool:
    """Is this the identity of a note of such a file?"""
    return _note_file(ref).endswith((f"/{MEMORY}", *(f"/{name}" for name in INSTRUCTIONS)))


def list_memory_files(configs: Iterable[Path]) -> Iterator[Path]:
    """Every MEMORY.md there is."""
    for config in configs:
        yield from sorted(config.glob(f"projects/*/memory/{MEMORY}"))


def memory_paths(configs: Iterable[Path], cwd: Path) -> list[Path]:
    """Where the MEMORY.md of a folder may be, there or not, the likeliest first: that of its
    repository's main folder, then its own."""
    folders = dict.fromkeys(filter(None, (identify_project(str(cwd)).root, str(cwd))))
    found = []
    for config in configs:
        for folder in folders:
            name = project_slug(folder)
            if len(name) == _LONGEST_SLUG:  # with a checksum we cannot make: look who has it
                listed = sorted((config / "projects").glob(f"{name}-*"))
                name = listed[0].name if len(listed) == 1 else name
            found.append(config / "projects" / name / "memory" / MEMORY)
    return list(dict.fromkeys(found))


def list_instruction_files(folder: Path) -> list[Path]:
    """The project's own CLAUDE.md files that are there."""
    return [folder / name for name in INSTRUCTIONS if (folder / name).is_file()]


def folder_from_slug(name: str, hints: Iterable[str] = (), above: Path = Path("/")) -> str:
    """The folder a slug stands for: the first of the hints that fits, else one that is there; "".

    Hints are folders known from elsewhere, such as those that transcripts name."""
    for hint in hints:
        if matches_slug(name, hint):
            return hint
    return next(_scan_folders(name, above), "")


def _scan_folders(name: str, above: Path) -> Iterator[str]:
    """Folders below `above` whose path becomes this name, which begins with the dash before it."""
    try:
        with os.scandir(above) as listed:
            below = sorted(entry.name for entry in listed if entry.is_dir(follow_symlinks=False))
    except OSError:
        return
    for folder in below:
        dashed = f"-{project_slug(folder)}"
        if name == dashed:
            yield str(above / folder)
        elif name.startswith(f"{dashed}-"):
            yield from _scan_folders(name[len(dashed) :], above / folder)
