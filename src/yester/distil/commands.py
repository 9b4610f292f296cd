"""Shell commands as agents write them: what was run, what came of it, what was committed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

_STATUS = re.compile(r"(?:Exit code:?|exited with code:?|<exit_code>) ?(\d{1,3})\b")
_REFUSED = (
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this",
    "Request interrupted by user",
    "This command requires approval",
    "<tool_use_error>Cancelled",
)

# What a simple command is for; the first row that matches. A check is run again after a change.
KINDS: tuple[tuple[str, str, str], ...] = (
    ("test", r"(?:py\.?test|python\S* -m (?:pytest|unittest)|tox|nox|nosetests)\b", "pytest -q"),
    (
        "test",
        r"(?:npx |bunx |pnpm (?:exec )?|yarn )?(?:jest|vitest|mocha|ava|playwright test"
        r"|cypress run)\b",
        "npx vitest run",
    ),
    ("test", r"(?:npm|pnpm|yarn|bun)(?: run)?(?: -\S+)* t(?:est)?(?:\b|:)", "bun run test:e2e"),
    (
        "test",
        r"(?:cargo (?:test|nextest)|go test|dotnet test|swift test|mix test|rspec"
        r"|bundle exec rspec|phpunit|vendor/bin/phpunit|ctest|zig test|deno test)\b",
        "go test ./...",
    ),
    ("test", r"(?:mvn|\./mvnw|gradle|\./gradlew)\b.*\b(?:test|verify|check)\b", "./gradlew test"),
    (
        "test",
        r"(?:make|just|mise run|task|rake|nx|turbo(?: run)?) (?:-\S+ )*\S*tests?\b",
        "mise run test:ci",
    ),
    (
        "lint",
        r"(?:npx |bunx |pnpm (?:exec )?|yarn |uv run |poetry run )?(?:eslint|biome|ruff"
        r"|flake8|pylint|mypy|pyright|black|prettier|stylelint|shellcheck|golangci-lint"
        r"|rubocop|clippy|ktlint|markdownlint\S*|ty check)\b",
        "ruff check .",
    ),
    ("lint", r"(?:cargo (?:clippy|fmt)|go vet|gofmt|cargo check)\b", "go vet ./..."),
    (
        "lint",
        r"(?:npm|pnpm|yarn|bun|make|just|mise|task|turbo|nx)(?: run)?(?: -\S+)* \S*(?:lint"
        r"|format|fmt|typecheck|type-check|check)\b",
        "bun run lint",
    ),
    (
        "build",
        r"(?:npx |bunx |pnpm (?:exec )?|yarn )?(?:tsc|vite build|webpack|next build|esbuild"
        r"|rollup)\b",
        "npx tsc --noEmit",
    ),
    (
        "build",
        r"(?:cargo build|go build|go install|cmake|ninja|gcc|g\+\+|clang|javac|dotnet build"
        r"|swift build|xcodebuild|docker(?: buildx)? build|zig build|mvn|gradle|\./gradlew"
        r"|make)\b",
        "go build ./...",
    ),
    (
        "build",
        r"(?:npm|pnpm|yarn|bun|just|mise|task|turbo|nx)(?: run)?(?: -\S+)* \S*(?:build"
        r"|compile)\b",
        "npm run build",
    ),
    (
        "install",
        r"(?:npm (?:i|install|ci)|pnpm (?:i|install|add)|yarn(?: add| install)?|bun (?:i"
        r"|install|add)|pip3? install|python\S* -m pip|uv (?:sync|pip|add)|poetry (?:add"
        r"|install)|cargo add|go (?:get|mod)|brew|apt(?:-get)?|gem install|bundle install)\b",
        "pnpm install",
    ),
    (
        "look",
        r"(?:ls|cat|head|tail|grep|rg|find|fd|sed -n|awk|wc|tree|pwd|which|echo|printf|stat"
        r"|file|du|df|diff|jq|sort|uniq|cut|xxd|test|\[|true|sleep|ps|env|printenv|date"
        r"|hexdump|od|strings|nl|less|more|realpath|basename|dirname|type|command)\b",
        "ls -la src",
    ),
    (
        "look",
        r"git(?: -C \S+)?(?: --no-pager)? (?:status|log|diff|show|branch|blame|rev-parse"
        r"|remote|ls-files|grep|describe|reflog|config --get|merge-base|cat-file|fetch)\b",
        "git log --oneline -5",
    ),
    (
        "look",
        r"gh (?:pr|issue|run|repo|release|workflow) (?:view|list|diff|checks|status|watch)\b",
        "gh pr view 12",
    ),
    ("vcs", r"(?:git|gh|hg|jj|svn)\b", "git push"),
)
_KINDS = tuple((kind, re.compile(pattern)) for kind, pattern, _ in KINDS)
CHECKS = frozenset({"test", "lint", "build"})

_NOISE = re.compile(
    r"(?:2>&1|2?>\s?/dev/null|&>\s?/dev/null|\|&?\s?(?:head|tail|grep|rg"
    r"|egrep|sed|awk"
    r"|cat|tee|sort|uniq|wc|less|cut|jq|xargs|tr|python3?)\b.*)"
)
_WRAPPERS = re.compile(
    r"\A(?:(?:\w+=(?:'[^']*'|\"[^\"]*\"|\S*)|sudo|time|env|nice|command|exec|rtk"
    r"|timeout \S+|then|do)\s+)+"
)
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
_TRAILER = re.compile(
    r"^(?:Co-authored-by|Signed-off-by|Reviewed-by|Change-Id|Generated[- ]by|Entire-\w+|Claude-\w+"
    r"|Refs?|Session-Id)\b\s*:.*$|^.*Generated with .*$",
    re.I | re.M,
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
    if any(mark in output[:600] for mark in _REFUSED):
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
    line = command.split("<<", 1)[0]
    found = []
    for part in _SEPARATOR.split(line):
        part = _WRAPPERS.sub("", _NOISE.sub("", part).strip().lstrip("({ "))
        if part and not _CHANGES_FOLDER.match(part):
            found.append(" ".join(part.split()))
    return found


def kind(command: str) -> str:
    """test, lint, build, install, look, vcs or "": the first of these that a part of it is."""
    kinds = {_kind(part) for part in simple(command.split("\n", 1)[0])}
    for name in ("test", "lint", "build", "install", "vcs", ""):
        if name in kinds:
            return name
    return "look"


def _kind(part: str) -> str:
    return next((name for name, pattern in _KINDS if pattern.match(part)), "")


def main_part(command: str) -> str:
    """The one that matters: the first of the command's kind, else the first that does something."""
    parts = simple(command.split("\n", 1)[0]) or [command.split("\n", 1)[0]]
    for wanted in (frozenset({kind(command)}) & CHECKS, frozenset({"install", "vcs", ""})):
        for part in parts:
            if _kind(part) in wanted:
                return part
    return parts[0]


def typed(command: str) -> str:
    """The first line as it was typed, without what only shapes its output."""
    return _NOISE.sub("", command.split("\n", 1)[0]).strip()


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
    message = _TRAILER.sub("", "\n\n".join(texts)).strip()
    return "" if message.startswith("$(") else message
