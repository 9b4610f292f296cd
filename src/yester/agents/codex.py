"""Codex's rollouts, versions 0.140 to 0.166 (older ones as far as they can be read).

Indexed are the response items: prompts, answers, readable reasoning, each tool call together with
its result, the last plan, the summary of a compaction. Left out, and counted by reason: events
(they repeat the same content), developer messages (our own injected memory among them), the
instructions and context the client puts into user messages, encrypted reasoning, token counts,
and what a fork copied from the session it came from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from yester.agents.base import Result, State, strip_client_text, treat_text
from yester.agents.sources import Transcript, make_reader
from yester.agents.values import (
    Record,
    decode_json,
    dict_at,
    input_fields,
    join_output,
    list_blocks,
    nested_text,
    text_at,
    value_at,
)
from yester.model import COMMENTARY, Item, replace

RECORDS = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})

_CWD = re.compile(r"<cwd>([^<]+)</cwd>|Current working directory: (.+)")
_PLAN = re.compile(r"<proposed_plan>\s*+(.+?)(?:</proposed_plan>|\Z)", re.S)
_EXIT = re.compile(r"(?:exited with code|Exit code:) (-?\d{1,10})\b")
_FAILED = re.compile(
    r"[\w ]{0,40}\bfailed\b|.{0,40}\brejected\b|unsupported |unable to |aborted|error\b", re.I
)
_ABORTED = re.compile(r"aborted by user\b")
_HEADER = re.compile(  # a patch run by a shell command has two
    r"\A(?:(?:Chunk ID|Wall time|Duration|Exit code|Original token count|Total output lines): .*\n"
    r"|Process (?:exited with code|running with session ID) .*\n)+(?:Output:\n|(?=aborted))"
)
_UUID_CHARS = 36
_LAST_SAID = "\0said"  # key of the answer that may turn out to be a compaction's summary


class CodexState(State):
    copied: bool = False  # still in what a fork took over from another session


class Rollout(Transcript):
    agent = "codex"
    state_type = CodexState
    state: CodexState

    @staticmethod
    def is_own_record(record: dict[str, Any]) -> bool:
        """Only Codex writes lines of a type with its payload; its first versions wrote states."""
        typed = text_at(record, "type") in RECORDS and isinstance(record.get("payload"), dict)
        return typed or record.get("record_type") == "state"

    @staticmethod
    def name_session(path: Path) -> str:
        stem = path.name.partition(".jsonl")[0]
        return stem[-_UUID_CHARS:] if stem.startswith("rollout-") else stem

    def read_record(self, record: dict[str, Any]) -> Iterator[Item]:
        kind, payload = record.get("type"), record.get("payload")
        if payload is None and "record_type" not in record:  # before September 2025
            kind, payload = ("response_item" if kind else "session_meta"), record
        if not isinstance(payload, dict):
            self.reading.skip(str(record.get("record_type") or kind or "untyped"))
            return
        if kind == "session_meta":
            self._read_head(payload)
            return
        self.place_record(record.get("timestamp"), payload.get("cwd"))
        if kind in ("event_msg", "turn_context"):
            self._begin_turn(payload)
            self.reading.skip(kind if kind == "turn_context" else f"{payload.get('type')} event")
        elif kind not in ("response_item", "compacted"):
            self.reading.skip(str(kind or "untyped"))
        elif self.state.copied:
            self.reading.skip("copied from another session")
        elif kind == "compacted":
            yield from self._read_compaction(payload)
        else:
            yield from self._give_last_said()
            yield from self._read_response(payload)

    def _read_head(self, meta: Record) -> None:
        """The file's own head; a second one was copied by a fork."""
        own, root = text_at(meta, "id"), meta.get("session_id")
        if self.state.project or not own:
            self.reading.skip("session_meta")
            return
        spawned = dict_at(meta, "source").get("subagent")
        if spawned:
            spawn = dict_at(spawned, "thread_spawn")
            kind = value_at(spawn, "agent_role", "agent_nickname") or spawned
            self.actor = f"{kind}:{own}" if isinstance(kind, str) else own
            root = root or spawn.get("parent_thread_id")
        self.state.session = root if spawned and isinstance(root, str) else own
        self.state.actor = self.actor
        self.state.copied = bool(meta.get("forked_from_id")) and not meta.get("history_base")
        branch = dict_at(meta, "git").get("branch")
        self.place_record(meta.get("timestamp"), meta.get("cwd"), branch)

    def _begin_turn(self, payload: Record) -> None:
        """Ids grow with time: a turn younger than the session is its own, not the copied one's."""
        turn = payload.get("turn_id")
        if self.state.copied and isinstance(turn, str):
            own = (self.actor or self.state.session).rsplit(":", 1)[-1]
            if turn > own or len(turn) != _UUID_CHARS:
                self.state.copied = False

    def _read_response(self, payload: Record) -> Iterator[Item]:
        kind = payload.get("type")
        if kind == "message":
            yield from self._read_message(payload)
        elif kind == "reasoning":
            summary, content = payload.get("summary"), payload.get("content")
            if text := join_output(nested_text(summary), nested_text(content)):
                yield self.make_message(payload.get("id"), text, "thinking")
            else:
                self.reading.skip("encrypted reasoning")
        elif kind in ("function_call", "custom_tool_call", "local_shell_call"):
            yield from self._read_tool_call(payload)
        elif kind in ("function_call_output", "custom_tool_call_output"):
            yield from self.add_result(payload.get("call_id"), _read_output(payload.get("output")))
        elif kind == "web_search_call" and isinstance(action := payload.get("action"), dict):
            yield self.make_call(payload.get("id"), "web_search", action)
        else:
            self.reading.skip(str(kind or "untyped"))

    # --- what was said -----------------------------------------------------------------------

    def _read_message(self, payload: Record) -> Iterator[Item]:
        role = payload.get("role")
        if role == "user":
            yield from self._read_user_message(payload)
        elif role == "assistant":
            text = nested_text(payload.get("content"))
            said = self.make_message(payload.get("id"), text)
            if payload.get("phase") == COMMENTARY:
                said = replace(said, type=COMMENTARY)
            yield from self.await_result(_LAST_SAID, said)
            for plan in _PLAN.findall(text):
                yield self.make_plan(plan.strip())
        else:
            self.reading.skip(f"{role} message")

    def _read_user_message(self, payload: Record) -> Iterator[Item]:
        texts = []
        # The client puts texts of its own beside the user's.
        for text in map(str.strip, map(nested_text, list_blocks(payload.get("content")))):
            treatment = treat_text(self.agent, text)
            if treatment == "shell":
                yield from self._read_shell(text)
            elif treatment == "notification":
                yield self.make_notice(payload.get("id"), text, "spawn_agent")
            elif not treatment:
                texts.append(strip_client_text(self.agent, "prompt", text))
            else:
                self.reading.skip(treatment.removeprefix("skip "))
                if match := _CWD.search(text):
                    self.place_record(None, match[1] or match[2])
        if text := "\n".join(texts).strip():
            yield self.make_prompt(payload.get("id"), text)

    def _read_shell(self, text: str) -> Iterator[Item]:
        """A command the user ran in the client, with its output."""
        for command, output in _read_shell_runs(text):
            item = self.make_call(None, "shell_command", {"command": command}, origin="user")
            yield _read_output(output).complete_call(item)

    def _give_last_said(self) -> Iterator[Item]:
        if said := self.waiting.pop(_LAST_SAID, None):
            yield said.item

    def _read_compaction(self, payload: Record) -> Iterator[Item]:
        text = strip_client_text(self.agent, "summary", text_at(payload, "message")).strip()
        said = self.waiting.get(_LAST_SAID)
        if said and said.item.body == text:
            del self.waiting[_LAST_SAID]
            self.reading.skip("summary said twice")
        yield from self._give_last_said()
        if text:
            yield self.make_summary(None, text)
        else:
            self.reading.skip("encrypted compaction")

    # --- what was done -----------------------------------------------------------------------

    def _read_tool_call(self, payload: Record) -> Iterator[Item]:
        given = input_fields(value_at(payload, "action", "arguments", "input"))
        tool, space = text_at(payload, "name") or "local_shell", text_at(payload, "namespace")
        if space.startswith("mcp__"):
            tool = f"{space}__{tool.lstrip('_')}"
        if isinstance(command := given.get("command"), list):
            given = {**given, "command": _join_command(command)}
        if isinstance(chars := given.get("chars"), str):  # keys pressed; Ctrl-C is no text
            given = {**given, "chars": "".join(c for c in chars if c.isprintable() or c == "\n")}
        yield from self.read_call(value_at(payload, "call_id", "id"), tool, given)


def _read_shell_runs(text: str) -> Iterator[list[str]]:
    """Command and result, between their tags; one after the other, so that it takes linear time."""
    at = 0
    while True:
        found = []
        for name in ("command", "result"):
            start = text.find(f"<{name}>", at)
            at = text.find(f"</{name}>", start)
            if start < 0 or at < 0:
                return
            inner = text[start + len(name) + 2 : at]
            found.append(inner.removeprefix("\n").removesuffix("\n"))
        yield found


def _join_command(words: list[Any]) -> str:
    """`bash -lc SCRIPT` is the script."""
    texts = [word for word in words if isinstance(word, str)]
    return texts[-1] if len(texts) == 3 and texts[1] in ("-lc", "-c") else " ".join(texts)


def _read_output(output: Any) -> Result:
    """A call's output, whose form changed over the versions."""
    failed, status = False, None
    if isinstance(output, dict):  # {content, success}
        failed = output.get("success") is False
        output = output.get("content")
    text = nested_text(output)
    if text.startswith('{"output":') and isinstance(whole := decode_json(text), dict):
        return Result(whole.get("output"), failed, dict_at(whole, "metadata").get("exit_code"))
    headed = False
    while match := _HEADER.match(text):
        headed, text = True, text[match.end() :]
        if code := _EXIT.search(match[0]):
            status = status or int(code[1])
    if not headed or _ABORTED.match(text):
        failed = failed or bool(_FAILED.match(text))
    elif text.startswith('{"result":') and isinstance(whole := decode_json(text), dict):
        text = nested_text(whole.get("result")) or text  # from an MCP server
    return Result(text, failed, status)


READER = make_reader(Rollout)
