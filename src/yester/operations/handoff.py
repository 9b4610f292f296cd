"""A session taken up again: in its own client, or handed over to another with what it needs."""

from __future__ import annotations

import shlex

from yester.agents.descriptors import Agent, find_agent
from yester.context.cards import find_open_ends, read_cards
from yester.context.lines import quote_text
from yester.errors import NotFound, UsageError
from yester.memory import Memory
from yester.model import Filters, Paging, Session, team_user
from yester.operations.context import ContextRequest, build_context
from yester.project import Projects
from yester.text.document import estimate_tokens
from yester.text.sentences import shorten_text

TOKENS = 1_500  # of what is handed over
_REQUEST, _LAST, _OPEN = 1_200, 600, 200  # characters: the first request, the last, an open end
_MOST_OPEN = 4
_LATEST = 50  # sessions, among which one is of this machine's user


def find_wanted(memory: Memory, named: str, cwd: str) -> Session:
    """The session that is named; without a name the last in this folder's project."""
    if named:
        return memory.find_session(named)
    key = Projects(memory.config.projects).by_folder(cwd).key
    found = memory.reading.sessions(Filters(projects=(key,)), Paging(_LATEST))
    own = next((one for one in found if not team_user(one.key)), None)
    if own is None:
        raise NotFound("no session is recorded in this project; name one: yester sessions")
    return own


def resume_words(session: Session) -> list[str]:
    """The command by which the session's own client takes it up again."""
    if user := team_user(session.key):
        raise UsageError(f"the session is {user}'s, and goes on on {user}'s machine alone")
    agent = find_agent(session.agent)
    if not agent.resume:
        label = agent.label or session.agent
        raise UsageError(f"{label} has no command that takes up a session by its id")
    return [agent.program, *(word.format(session=session.key) for word in agent.resume)]


def resume_line(session: Session) -> str:
    """The same for a shell, in the session's folder."""
    place = f"cd {shlex.quote(session.cwd)} && " if session.cwd else ""
    return place + shlex.join(resume_words(session))


def begin_words(agent: Agent, text: str) -> list[str]:
    return [agent.program, *(word.format(text=text) for word in agent.begin)]


def pack_session(memory: Memory, session: Session) -> str:
    """What another agent needs to go on: the request, what was done and is open, decisions, files;
    from cards, so that nothing is called done without evidence."""
    label = find_agent(session.agent).label or session.agent
    prompts = Filters(session=session.key, kinds=("prompt",))
    first = memory.reading.select(prompts, Paging(1, oldest_first=True))
    last = memory.reading.select(prompts, Paging(1))
    request = shorten_text(first[0].body, _REQUEST) if first else session.title
    head = f"Go on with work that was begun in {label}. The request was:\n\n{request}\n\n"
    if last and last != first:
        head += f"The last thing asked for:\n\n{shorten_text(last[0].body, _LAST)}\n\n"
    head += "What is known about it:\n\n"
    budget = TOKENS - estimate_tokens(head)
    wanted = ContextRequest(
        "SessionStart", session.cwd, budget=budget, session=session.key, source="compact",
        project=Projects(memory.config.projects).by_key(session.project),
    )  # fmt: skip
    known = build_context(memory, wanted).text or "Nothing besides."
    return head + known + _list_open(memory, session)


def _list_open(memory: Memory, session: Session) -> str:
    """What the session itself has left; a start leaves that out, where its agent knows it."""
    cards = read_cards(memory.reading, Filters(session=session.key))
    ends = [end.text or end.card.title for end in find_open_ends(cards, session.ended + 1)]
    lines = [f"- {quote_text(shorten_text(end, _OPEN))}" for end in ends[:_MOST_OPEN]]
    return "\n\nLeft open:\n" + "\n".join(lines) if lines else ""
