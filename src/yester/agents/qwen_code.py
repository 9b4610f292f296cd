"""Qwen Code's chats: lines in Claude Code's envelope with Gemini's parts in them.

Indexed: prompts, answers, thoughts, each tool call together with its result, the summary of a
compression. Left out, and counted by type: the client's telemetry and snapshots, and what hooks
have put into prompts (our own injected memory among it).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from yester.agents.base import Result, strip_client_text, treat_text
from yester.agents.gemini_cli import EXIT_LINE, message_text, read_responses
from yester.agents.sources import Transcript, make_reader
from yester.agents.values import Record, dict_at, dicts_at, input_fields, text_at
from yester.model import Item

_PARTS_OF = "gemini-cli"  # whose parts they are, and what it has put into them


class QwenChat(Transcript):
    agent = "qwen-code"

    @staticmethod
    def is_own_record(record: dict[str, Any]) -> bool:
        """Claude Code's envelope around a message of Gemini's form."""
        parts = dict_at(record, "message").get("parts")
        return "parentUuid" in record and "sessionId" in record and isinstance(parts, list)

    def read_record(self, record: dict[str, Any]) -> Iterator[Item]:
        kind, own = text_at(record, "type"), text_at(record, "uuid")
        self.state.session = text_at(record, "sessionId") or self.state.session
        self.place_record(record.get("timestamp"), record.get("cwd"), record.get("gitBranch"))
        message = dict_at(record, "message")
        if kind == "user":
            typed = message_text(message.get("parts"))
            text = strip_client_text(_PARTS_OF, "prompt", typed).strip()
            if text and treat_text(self.agent, text):  # a sub-agent has ended
                yield self.make_notice(own, text, "task")
            elif text:
                yield self.make_prompt(own, text)
            else:
                self.reading.skip("injected context" if typed.strip() else "empty")
        elif kind == "assistant":
            yield from self._read_answer(own, message)
        elif kind == "tool_result":
            yield from self._read_results(record, message)
        elif record.get("subtype") == "chat_compression":
            payload = dict_at(record, "systemPayload")
            history = dicts_at(payload, "compressedHistory")
            texts = [message_text(part.get("parts")) for part in history[:1]]
            yield self.make_summary(own, "\n".join(texts))
        else:
            self.reading.skip(text_at(record, "subtype") or kind or "untyped")

    def _read_answer(self, own: str, message: Record) -> Iterator[Item]:
        parts = message.get("parts")
        if thought := message_text(parts, thought=True):
            yield self.make_message(f"{own}:thoughts", thought, "thinking")
        if text := message_text(parts).strip():
            yield self.make_message(own, text)
        for part in dicts_at(message, "parts"):
            if call := dict_at(part, "functionCall"):
                tool = text_at(call, "name") or "unknown"
                yield from self.read_call(call.get("id"), tool, input_fields(call.get("args")))

    def _read_results(self, record: Record, message: Record) -> Iterator[Item]:
        outcome = dict_at(record, "toolCallResult")
        for part in dicts_at(message, "parts"):
            answer = dict_at(part, "functionResponse")
            output, failed = read_responses([part])
            codes = EXIT_LINE.findall(output)
            status = int(codes[-1]) if codes else None  # the client's own word comes last
            output = strip_client_text(_PARTS_OF, "result", output, text_at(answer, "name"))
            failed = failed or outcome.get("status") == "error" or bool(status)
            yield from self.add_result(answer.get("id"), Result(output, failed, status))


READER = make_reader(QwenChat)
