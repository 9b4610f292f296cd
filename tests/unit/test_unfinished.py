"""What a closing message leaves open, whatever words it finds for it."""

import pytest

from tests.distilling import Story
from tests.table import each
from yester.cards.drafts import Gate
from yester.cards.unfinished import find_unfinished

pytestmark = pytest.mark.requirement("DIS-12", "DEL-01")


def leave(closing, edited=True):
    story = Story()
    story.prompt("Print the tide table on the mooring slip")
    if edited:
        story.edits("slips/print.py")
    story.says(closing)
    [turn] = story.turns()
    return find_unfinished(turn, "Print the tides", Gate())


@each(
    ("closing", "left"),
    [
        ("The tides are printed.\n\n- [x] Table\n- [ ] Danish headings\n- [ ] Moon phases",
         ["Danish headings; Moon phases"]),
        ("The tides are printed. Still open: berths without a gauge.", ["berths without a gauge."]),
        ("The tides are printed.\n\n**Follow-up**\n- Danish headings\n- Nothing else",
         ["Danish headings"]),
        ("The tides are printed.\n\nRemaining:\n- a gauge for the inner berths, which have none",
         ["a gauge for the inner berths, which have none"]),
        ("The tides are printed. 41 tests pass, 2 fail in `test_gauges.py`.",
         ["41 tests pass, 2 fail in test_gauges.py."]),
        ("The tides are printed. I had no printer here, so I could not try the long form.",
         ["I had no printer here, so I could not try the long form."]),
        ("The tides are printed. The harbour master should confirm the datum.",
         ["The harbour master should confirm the datum."]),
        ("The tides are printed. For now the datum is the one of Esbjerg.",
         ["For now the datum is the one of Esbjerg."]),
        ("The tides are printed. Which datum should be used for the inner berths?",
         ["Which datum should be used for the inner berths?"]),
        ("The tides are printed. Slips of the old form lose their last line. I did not touch that.",
         ["Slips of the old form lose their last line."]),
        ("Die Tiden stehen auf dem Zettel. Der Pegel der Innenhäfen fehlt noch.",
         ["Der Pegel der Innenhäfen fehlt noch."]),
        ("潮汐表已经打印。内港的水位还没有处理。", ["内港的水位还没有处理。"]),
    ],
)  # fmt: skip
def test_what_work_leaves_open_is_heard(closing, left):
    assert leave(closing) == left


@each(
    "closing",
    [
        "The tides were not printed yet when the slip was cut. The slip is cut last now.",
        "The slip waits for the gauge before it is cut. Tried with three gauges.",
        'The slip says "not available yet" where a berth has no gauge. Covered by a test.',
        "The tides are printed. Shall I add the moon phases?",
        "The tides are printed. You may want to run the linter, which should be updated some day.",
        "The tides are printed. The slip shows the deferred sailings too.",
        "The tides are printed. 0 failed, 43 passed.",
        "The tides are printed.\n\n- Fixed the two tests that could not reach the gauge",
        "The tides are printed.\n\n- Table (line 8): Added a warning that tides may not be tested",
        "The tides are printed. I did not run the tests because this only moves a page.",
        "The tides are printed. actionlint is not installed here, so I could not run it.",
        "The tides are printed. A berth is only told where its path hasn't been seen before.",
    ],
)
def test_what_was_mended_quoted_or_offered_is_not_open(closing):
    assert leave(closing) == []


def test_where_nothing_was_changed_only_what_is_plainly_undone_is_open():
    assert leave("For now the datum is the one of Esbjerg, a placeholder.", edited=False) == []
    assert leave("I looked at it. The race in print.py is not fixed yet.", edited=False)
