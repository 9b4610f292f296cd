"""The agents yester reads, by name."""

from yester.agents import claude_code, codex, copilot_cli, gemini_cli
from yester.agents.base import Agent

AGENTS: dict[str, Agent] = {
    agent.name: agent
    for agent in (claude_code.AGENT, codex.AGENT, copilot_cli.AGENT, gemini_cli.AGENT)
}
