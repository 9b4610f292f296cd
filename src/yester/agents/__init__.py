"""The agents yester reads, by name."""

from yester.agents import (
    aider,
    claude_code,
    codex,
    copilot_cli,
    cursor,
    gemini_cli,
    opencode,
    specstory,
)
from yester.agents.base import Agent

AGENTS: dict[str, Agent] = {
    module.AGENT.name: module.AGENT
    for module in (
        claude_code,
        codex,
        gemini_cli,
        copilot_cli,
        opencode,
        cursor,
        specstory,
        aider,
    )
}
