"""The agents yester knows, as data: where their transcripts are, what they set, how hooks talk.

`yester mcp`, `--help` and a hook's answer look things up here and must start quickly: this module
loads no reader. `base.load_reader` loads the one of an agent when a transcript is to be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# Claude Code's names of events (Codex and Copilot's Claude plugins use them too) → what happened.
# A name that is not here is remembered as an event and means nothing yet.
CLAUDE_EVENTS: Mapping[str, str] = {
    "SessionStart": "start",
    "UserPromptSubmit": "prompt",
    "PreToolUse": "read",
    "SubagentStart": "agent start",
    "PostToolUse": "tool",
    "PostToolUseFailure": "failure",
    "PostCompact": "compaction",
    "SubagentStop": "agent end",
    "Stop": "stop",
    "StopFailure": "stop failure",
    "Interrupt": "interrupt",
    "SessionEnd": "end",
}


@dataclass(frozen=True, slots=True)
class Hooks:
    """How a client's hooks talk. As it stands: those of a client that yester does not know.

    `answer_form` is nested, top or plain. An event that is not in `answerable` gets no answer at
    all: context in answer to Stop makes Claude Code go on (one stop became nine), and elsewhere it
    is an error or lost. So the events are named, not excluded.
    """

    answer_form: str = "plain"
    answerable: frozenset[str] = frozenset(
        {"SessionStart", "UserPromptSubmit", "SubagentStart", "PreToolUse", "PostToolUse"}
    )
    events: Mapping[str, str] = field(default_factory=lambda: CLAUDE_EVENTS)  # theirs → ours


@dataclass(frozen=True, slots=True)
class Agent:
    name: str
    label: str
    folders: str  # the setting that lists where it keeps its files
    transcripts: tuple[str, ...]  # patterns of the transcripts below each of these folders
    variables: tuple[str, ...] = ()  # that say to a process that this agent has started it
    session_variable: str = ""  # that names the session
    hooks: Hooks = Hooks()
    # What a hook's payload proves: a field no other client sends, and the transcript's path. Some
    # clients do not name the transcript.
    payload_field: str = ""
    transcript_path: str = ""
    names_transcript: bool = True
    # Where yester can be installed: the program, its first version that loads the plugin and the
    # newest one this was tried with.
    program: str = ""
    first_version: tuple[int, ...] = ()
    tried_version: tuple[int, ...] = ()


CLAUDE_CODE = Agent(
    "claude-code",
    "Claude Code",
    folders="claude_code_dirs",
    transcripts=("projects/**/*.jsonl",),
    variables=("CLAUDECODE",),
    session_variable="CLAUDE_CODE_SESSION_ID",
    hooks=Hooks("nested"),
    transcript_path=r"[/\\]projects[/\\][^/\\]+[/\\][^/\\]+\.jsonl$",
    program="claude",
    first_version=(2, 1, 157),
    tried_version=(2, 1, 325),
)
CODEX = Agent(
    "codex",
    "Codex",
    folders="codex_dirs",
    transcripts=("sessions/**/rollout-*.jsonl", "archived_sessions/**/rollout-*.jsonl"),
    variables=("CODEX_THREAD_ID", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED"),
    session_variable="CODEX_THREAD_ID",
    hooks=Hooks("nested"),  # takes no key it does not know
    payload_field="turn_id",
    transcript_path=r"[/\\]rollout-",
)
GEMINI_CLI = Agent(
    "gemini-cli",
    "Gemini CLI",
    folders="gemini_dirs",
    transcripts=(
        "tmp/*/chats/session-*.json",
        "tmp/*/chats/session-*.jsonl",
        "tmp/*/chats/*/*.jsonl",
    ),
    variables=("GEMINI_CLI",),
    session_variable="GEMINI_SESSION_ID",
    hooks=Hooks("nested", frozenset({"SessionStart", "BeforeAgent"})),
)
COPILOT_CLI = Agent(
    "copilot-cli",
    "Copilot CLI",
    folders="copilot_dirs",
    transcripts=("session-state/*/events.jsonl", "session-state/*.jsonl"),
    variables=("COPILOT_CLI",),
    # Its own names, and those it uses for the hooks of a plugin in Claude Code's format.
    hooks=Hooks(
        "top",
        frozenset({"sessionStart", "userPromptSubmitted", "SessionStart", "UserPromptSubmit"}),
    ),
    transcript_path=r"[/\\]session-state[/\\][^/\\]+[/\\]events\.jsonl$",
    names_transcript=False,
)
OPENCODE = Agent(
    "opencode",
    "opencode",
    folders="opencode_dirs",
    # Files before the database that replaced them: the later word is the database's.
    transcripts=("storage/session/*/*.json", "opencode*.db"),
    variables=("OPENCODE",),
)
CURSOR = Agent(
    "cursor",
    "Cursor",
    folders="cursor_dirs",
    transcripts=(
        "projects/*/agent-transcripts/*.jsonl",
        "projects/*/agent-transcripts/*/*.jsonl",
        "projects/*/agent-transcripts/*/subagents/*.jsonl",
        "chats/*/*/store.db",
        "User/globalStorage/state.vscdb",
    ),
    variables=("CURSOR_AGENT",),
)
SPECSTORY = Agent(
    "specstory",
    "SpecStory",
    folders="transcript_dirs",
    transcripts=(".specstory/history/*.md",),
)
AIDER = Agent(
    "aider",
    "Aider",
    folders="transcript_dirs",
    transcripts=(".aider.chat.history.md",),
)

AGENTS: dict[str, Agent] = {
    agent.name: agent
    for agent in (
        CLAUDE_CODE, CODEX, GEMINI_CLI, COPILOT_CLI, OPENCODE, CURSOR, SPECSTORY, AIDER,
    )
}  # fmt: skip


def hooks_of(client: str) -> Hooks:
    return AGENTS[client].hooks if client in AGENTS else Hooks()


def detect_agent(environ: Mapping[str, str]) -> str:
    """The agent that has started this process; "" where a person has, or nobody says.

    A variable can be inherited from far above or be missing, so nothing depends on it but how
    answers look and which session they are written down for.
    """
    for agent in AGENTS.values():
        if any(environ.get(variable) for variable in agent.variables):
            return agent.name
    return ""


def detect_session(environ: Mapping[str, str]) -> tuple[str, str]:
    """The session we were started in and its agent; both "" where they are not known."""
    for agent in AGENTS.values():
        if agent.session_variable and (key := environ.get(agent.session_variable, "")):
            return key, agent.name
    return "", ""
