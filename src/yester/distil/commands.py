"""Shell commands as agents write them: what was run, what came of it, what was committed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from yester.tables import load_pattern, load_rows

_STATUS = re.compile(r"(?:Exit code:?|exited with code:?|<exit_code>) ?(\d{1,3})\b")
CHECKS = frozenset({"test", "lint", "build"})

_SEPARATOR = re.compile(r"&&|\|\||;|\n")
_WORD = re.compile(r"[\w./:@-]+")
_PLACE = re.compile(r"/|\.\w")
_CHANGES_FOLDER = re.compile(r"\A(?:cd|pushd|popd|set|export|source|\.)\b")

_COMMIT = re.compile(r"\bgit\b(?:\s+-[cC] \S+)*\s+commit\b(?P<rest>[^\n]*)")
_MESSAGE = re.compile(
    r"(?:-m|--message|-[a-ln-z]*m)[ =]?\s*(?:\"\$\(cat <<-?\s*['\"]?(?P<mark>\w+)['\"]?\n"
    r"(?P<document>.*?)\n[ \t]*(?P=mark)\b|\"(?P<double>(?:[^\"\\]|\\.)*)\"|'(?P<single>[^']*)'"
    r"|\$'(?P<ansi>(?:[^'\\]|\\.)*)')",
    re.S,
)
_FROM_INPUT = re.compile(
    r"(?:-F|--file)[ =]?-\s*<<-?\s*['\"]?(?P<mark>\w+)['\"]?\n(?P<document>.*?)\n(?P=mark)\b", re.S
)
_COMMITTED = re.compile(
    r"^\[(?P<branch>[^\]\n]+?) (?:\(root-commit\) )?(?P<hash>[0-9a-f]{7,40})\] ", re.M
)


@dataclass(frozen=True, slots=True)
class Ran:
    """A command and what came of it; `status` is None where nobody told."""

    command: str
    output: str
    status: int | None
    refused: bool = False

    @property
    def failed(self) -> bool:
        return self.status not in (0, None)


@dataclass(frozen=True, slots=True)
class Commit:
    subject: str
    body: str
    hash: str = ""


def read_run(command: str, output: str, failed: bool, status: int | None = None) -> Ran:
    """A command and what came of it. `status` is what the client told; else the output may."""
    if load_pattern("tools", "refused").search(output[:600]):
        return Ran(command, "", None, refused=True)
    if status is None:
        told = _STATUS.search(output[:300])
        status = int(told[1]) if told else int(failed)
    if failed and not status:
        status = 1
    if output.startswith(("Exit code", "Error: Exit code")):
        output = output.split("\n", 1)[1] if "\n" in output else ""
    return Ran(command, output, status)


def simple(command: str) -> list[str]:
    """The commands of a line, without what only shapes their output or changes the folder."""
    line = command.split("<<", 1)[0].replace("\\\n", " ")
    shapes_output = load_pattern("tools", "shapes output")
    wrapper = load_pattern("tools", "wrapper")
    found = []
    for part in _SEPARATOR.split(line):
        part = shapes_output.sub("", part).strip().lstrip("({ ")
        part = wrapper.sub("", part)
        if part and not _CHANGES_FOLDER.match(part):
            found.append(" ".join(part.split()))
    return found


def kind(command: str) -> str:
    """test, lint, build, install, look, vcs or "": the first of these that a part of it is."""
    kinds = {_kind(part) for part in simple(command)}
    for name in ("test", "lint", "build", "install", "vcs", ""):
        if name in kinds:
            return name
    return "look"


def _kind(part: str) -> str:
    rows = load_rows("tools", "commands")
    return next((row.name for row in rows if row.pattern.match(part)), "")


def main_part(command: str) -> str:
    """The one that matters: the first of the command's kind, else the first that does something."""
    parts = simple(command) or [command.split("\n", 1)[0]]
    for wanted in (frozenset({kind(command)}) & CHECKS, frozenset({"install", "vcs", ""})):
        for part in parts:
            if _kind(part) in wanted:
                return part
    return parts[0]


def typed(command: str) -> str:
    """The first line as it was typed, without what only shapes its output."""
    return load_pattern("tools", "shapes output").sub("", command.split("\n", 1)[0]).strip()


def words(command: str) -> list[str]:
    return _WORD.findall(command)


@lru_cache(maxsize=512)
def program(command: str) -> str:
    """`go test`, `pnpm`, `gh pr`: what must be the same for two runs to be comparable."""
    found = words(main_part(command))
    names = [word for word in found[:5] if not word.startswith("-") and not _PLACE.search(word)]
    return " ".join(names[: 3 if "run" in names[:2] else 2])


def commits(one: Ran) -> Iterator[Commit]:
    """What a command has committed: the messages as they were written."""
    if one.failed or one.refused:
        return
    for found in _COMMIT.finditer(one.command):
        if "--dry-run" in found["rest"] or _elsewhere(one.command[: found.start()]):
            continue
        place = one.command[found.end("rest") - len(found["rest"]) :]
        message = _message(place)
        if message:
            subject, _, body = message.partition("\n")
            hashes = [m["hash"] for m in _COMMITTED.finditer(one.output)]
            yield Commit(subject.strip(), body.strip(), hashes[-1] if hashes else "")


def _elsewhere(before: str) -> bool:
    """A repository made for a trial is not the project's."""
    return (
        "git init" in before or "mktemp" in before or re.search(r"\bcd /tmp\b", before) is not None
    )


def _message(rest: str) -> str:
    end = rest.find("git commit", 1)
    rest = rest if end < 0 else rest[:end]
    if found := _FROM_INPUT.search(rest):
        texts = [found["document"]]
    else:
        texts = []
        for found in _MESSAGE.finditer(rest):
            text = next(
                filter(None, (found["document"], found["double"], found["single"], found["ansi"])),
                "",
            )
            texts.append(text.replace('\\"', '"').replace("\\`", "`"))
            if found["document"]:
                break
    message = load_pattern("tools", "trailer").sub("", "\n\n".join(texts)).strip()
    return "" if message.startswith("$(") else message
