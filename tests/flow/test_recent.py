"""Recent context: the last sessions with their summary and an index of what they left."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.requirement("REC-12")

START = 1_770_000_000


def session(number, *parts, project="shop"):
    """(kind, role, text) each, a minute apart; sessions are a day apart."""
    return [
        {
            "ref": f"{number}-{n}", "kind": kind, "role": role, "text": text, "project": project,
            "session": f"session-{number}", "agent": "codex", "epoch": START + 86_400 * number + n,
        }
        for n, (kind, role, text) in enumerate(parts)
    ]  # fmt: skip


TALK = (
    ("prompt", "user", "Make the checkout faster"),
    ("message", "assistant", "I look at the queries first."),
    ("message", "tool", "EXPLAIN SELECT …"),
    ("observation", "", "The cart was read once per line"),
    ("message", "assistant", "Done: one query per cart."),
    ("message", "tool", "3 passed"),
)
SUMMED_UP = (
    ("prompt", "user", "Why do the totals differ?"),
    ("observation", "", "Rounding happened twice"),
    ("message", "assistant", "Rounded once now."),
    ("summary", "", "Totals differed because of rounding."),
)


def told(hits):
    return [hit.text for hit in hits]


def test_without_a_summary_prompts_and_the_closing_message_tell_it(memory):
    memory.add(session(1, *TALK))
    ((one, hits),) = memory.recent()
    assert (one.key, one.agent, one.project) == ("session-1", "codex", "shop")
    assert told(hits) == [
        "Make the checkout faster",
        "The cart was read once per line",
        "Done: one query per cart.",
    ]


def test_a_summary_takes_the_place_of_the_prompts(memory):
    memory.add(session(1, *SUMMED_UP))
    ((_, hits),) = memory.recent()
    assert told(hits) == ["Rounding happened twice", "Totals differed because of rounding."]


def test_what_came_after_the_summary_is_told_as_well(memory):
    memory.add(session(1, *SUMMED_UP, *TALK))
    ((_, hits),) = memory.recent()
    assert told(hits)[1:] == [
        "Totals differed because of rounding.",
        "Make the checkout faster",
        "The cart was read once per line",
        "Done: one query per cart.",
    ]


def test_the_last_three_sessions_of_all_projects_or_of_one(memory):
    for number in range(5):
        memory.add(session(number, *TALK, project="blog" if number == 4 else "shop"))
    assert [one.key for one, _ in memory.recent()] == ["session-4", "session-3", "session-2"]
    assert [one.key for one, _ in memory.recent(1, "shop")] == ["session-3"]
    assert memory.recent(project="nowhere") == []


def test_however_few_rows_the_end_is_among_them(memory):
    memory.add(session(1, SUMMED_UP[-1], *((("observation", "", f"thing {n}")) for n in range(30))))
    memory.add(session(2, *TALK, *((("observation", "", f"thing {n}")) for n in range(30))))
    (_, later), (_, earlier) = memory.recent(rows=3)
    assert told(earlier) == ["Totals differed because of rounding.", "thing 28", "thing 29"]
    assert told(later) == ["Done: one query per cart.", "thing 28", "thing 29"]


def test_a_sub_agents_words_do_not_close_a_session(run, transcript, memory):
    t = transcript()
    t.user("Look at the logs of the checkout")
    t.assistant("The main agent says the logs are clean.")
    folder = t.path.with_suffix("") / "subagents"
    sub = type(t)(folder / "agent-a1.jsonl", session=t.session, clock=t.clock + 60, count=50)
    sub.user("Read the logs", isSidechain=True, agentId="a1")
    sub.assistant("The sub-agent says it has read the logs.", isSidechain=True, agentId="a1")
    assert run("index").code == 0
    ((_, hits),) = memory.recent()
    assert "The sub-agent says it has read the logs." in told(memory.recall("sub-agent read logs"))
    assert told(hits)[-1] == "The main agent says the logs are clean."


@pytest.mark.requirement("DEL-09")
def test_the_command_shows_each_session_with_its_rows_and_their_cost(memory, run):
    memory.add(session(1, *SUMMED_UP))
    memory.add(session(2, *TALK))
    lines = run("recent").out.splitlines()
    assert lines[0].startswith("session-  2026-02-04 02:40  shop  1 prompt, 6 items")
    assert lines[1] == "  ❯ #5  2026-02-04 02:40  Make the checkout faster  ~6t"
    assert lines[3] == "  · #9  2026-02-04 02:40  Done: one query per cart.  ~7t"
    assert "  Σ #4  2026-02-03 02:40  Totals differed because of rounding.  ~9t" in lines
    answer = run("recent", "-n", "1", "--json").json["sessions"]
    assert [s["session"] for s in answer] == ["session-2"]
    assert [hit["kind"] for hit in answer[0]["hits"]] == ["prompt", "observation", "message"]
    assert "Totals differed because of rounding." in run("recent", "--format", "full").out


def test_what_a_turn_left_is_not_listed_beside_its_card_of_the_same_title(memory):
    """`distil` calls both by what came of the turn."""
    rows = session(1, *SUMMED_UP)
    for row in rows[1::2]:
        row["title"] = "Round totals once"
    memory.add(rows)
    ((_, hits),) = memory.recent()
    assert [hit.kind for hit in hits] == ["summary"]
