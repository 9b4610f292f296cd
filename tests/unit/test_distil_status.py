"""What came of a turn, by what was run, committed and taken back, on scripted histories."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.distilling import Story
from tests.table import each
from yester.cards.status import STATUSES, Changes, judge_turns
from yester.cards.turns import LOOK_BACK

pytestmark = pytest.mark.requirement("DIS-12", "DIS-13")

CLIENT, TEST = "pay/client.py", "tests/test_client.py"
OLD, NEW = "session = shared()\n", "with connect() as session:\n"


def judged(story: Story) -> list[str]:
    return [one.text for one in judge_turns(Changes(story.turns()).follow(), LOOK_BACK)]


def edit(story: Story, file: str = CLIENT, old: str = OLD, new: str = NEW) -> None:
    story.replaces(file, old, new)


def changed(story: Story, prompt: str = "Use one connection per call") -> Story:
    story.prompt(prompt)
    edit(story)
    return story


HISTORIES = {
    "a pull request was opened with it": (
        lambda s: (changed(s), s.commits("One connection per call"), s.says("Done."),
                   s.prompt("open a draft"),
                   s.ran("gh pr create --draft --fill", "https://example.org/a/b/pull/12"),
                   s.says("Opened.")),
        ["done: committed abc1234 in PR #12", "done: `gh pr create`"],
    ),
    "it ended while the agent only looked around": (
        lambda s: (s.prompt("Write a test for the client"), s.reads(CLIENT)),
        ["open: broken off"],
    ),
    "a pipe hides the status, and nothing was counted": (
        lambda s: (changed(s), s.ran("go build ./... 2>&1 | tail -3", ""), s.says("It builds.")),
        ["changed: not verified"],
    ),
    "what comes after && runs only if it has passed": (
        lambda s: (changed(s), s.ran("go build -o app . && ./app --help | head -3", "usage: app"),
                   s.says("Done.")),
        ["done: `go build -o app .` passed"],
    ),
    "a linter that had complained is content": (
        lambda s: (changed(s), s.ran("golangci-lint run 2>&1 | tail -5", "2 issues:\n* lll: 2"),
                   edit(s, TEST), s.ran("golangci-lint run 2>&1 | tail -5", "0 issues."),
                   s.says("Done.")),
        ["done: `golangci-lint run` passed"],
    ),
    "an interpreter refuses a changed file": (
        lambda s: (changed(s), s.fails(f"ruby -ryaml -e 'load \"{CLIENT}\"'", "bad indentation"),
                   s.says("The error is expected.")),
        ["failed: `ruby -ryaml -e 'load \"pay/client.py\"'` failed"],
    ),
    "the tests that ran at the commit passed": (
        lambda s: (changed(s), s.ran("pytest -q", "=== 2 failed, 7 passed in 0.31s ==="),
                   s.says("Two fail."), s.prompt("commit"),
                   s.ran("git commit -m 'One connection'",
                         "9 passed in 0.31s\n[main abc1234] One connection")),
        ["done: committed abc1234; tests at the commit 9 passed", "done: committed abc1234"],
    ),
    "it was put away and not brought back": (
        lambda s: (changed(s),
                   s.fails("git stash && pytest -q | tail -2; git stash pop",
                           "The stash entry is kept in case you need it again."),
                   s.ran("git stash drop"), s.says("Done.")),
        ["reverted: `git stash`"],
    ),
    "nothing has looked at it": (
        lambda s: (changed(s), s.says("Everything works now and all tests pass.")),
        ["changed: not verified"],
    ),
    "tests passed after the last change": (
        lambda s: (changed(s), s.ran("pytest -q", "9 passed in 0.31s"), s.says("Done.")),
        ["done: `pytest -q` 9 passed"],
    ),
    "tests passed before the last change": (
        lambda s: (s.prompt("Use one connection per call"), s.ran("pytest -q", "9 passed in 0.31s"),
                   edit(s), s.says("Done.")),
        ["changed: not verified"],
    ),
    "the last run failed, whatever is said": (
        lambda s: (changed(s), s.ran("pytest -q", "9 passed in 0.31s"), edit(s, TEST),
                   s.fails("pytest -q", "=== 2 failed, 7 passed in 0.31s ==="),
                   s.says("All tests pass, the work is complete.")),
        ["failed: `pytest -q` 2 failed"],
    ),
    "a pipe hides the status, the counts tell": (
        lambda s: (changed(s), s.ran("pytest -q | tail -3", "=== 2 failed, 7 passed in 0.3s ==="),
                   s.says("Done.")),
        ["failed: `pytest -q` 2 failed"],
    ),
    "it failed and then passed": (
        lambda s: (changed(s), s.fails("pytest -q", "=== 2 failed, 7 passed in 0.31s ==="),
                   edit(s, TEST), s.ran("pytest -q", "9 passed in 0.31s"), s.says("Done.")),
        ["done: `pytest -q` 9 passed"],
    ),
    "the status is that of another command": (
        lambda s: (changed(s), s.fails("go build -o /tmp/x ./cmd && /tmp/x nonsense", "usage: x"),
                   s.says("Done.")),
        ["changed: not verified"],
    ),
    "a tidy file is no working one": (
        lambda s: (changed(s), s.ran("ruff check .", "All checks passed!"), s.says("Done.")),
        ["changed: only `ruff check .` passed"],
    ),
    "committed": (
        lambda s: (changed(s), s.commits("Use one connection per call"), s.says("Committed.")),
        ["done: committed abc1234"],
    ),
    "tried and put back, and the file that was added is removed": (
        lambda s: (s.prompt("Sort the berths by a heap"), edit(s),
                   s.replaces("pay/heap.py", "", "class Heap:\n    pass\n"),
                   s.ran("pytest -q", "9 passed in 0.31s"), edit(s, old=NEW, new=OLD),
                   s.ran("rm pay/heap.py && pytest -q", "9 passed in 0.31s"),
                   s.says("The heap is slower, since it is built anew for every ship.")),
        ["reverted: edited back"],
    ),
    "a file is added and another one removed": (
        lambda s: (s.prompt("Sort the berths by a heap"),
                   s.replaces("pay/heap.py", "", "class Heap:\n    pass\n"),
                   s.ran("rm pay/sorted.py && pytest -q", "9 passed in 0.31s"), s.says("Done.")),
        ["done: `pytest -q` 9 passed"],
    ),
    "put back by the next turn, which does nothing else": (
        lambda s: (changed(s), s.says("Done."), s.prompt("too slow, as it was please"),
                   edit(s, old=NEW, new=OLD), s.says("It is as it was.")),
        ["reverted: edited back", "answered"],
    ),
    "put back by the next turn, which commits it": (
        lambda s: (changed(s), s.commits("One connection per call"), s.says("Done."),
                   s.prompt("too slow, as it was please"), edit(s, old=NEW, new=OLD),
                   s.commits("Share the session again", hash_="bcd2345"), s.says("It is back.")),
        ["reverted: edited back", "done: committed bcd2345"],
    ),
    "overruled by the next prompt, and only that is committed": (
        lambda s: (s.prompt("Wait for 60 seconds"), edit(s, new="WAIT = 60\n"), s.says("Done."),
                   s.prompt("no, make it 15, the harbour reports every 15 seconds"),
                   edit(s, old="WAIT = 60\n", new="WAIT = 15\n"), s.commits("Wait for 15 s"),
                   s.says("Done.")),
        ["reverted: changed again at the next prompts", "done: committed abc1234"],
    ),
    "gone on with in the next turn, and committed there": (
        lambda s: (s.prompt("Wait for 60 seconds"), edit(s, new="WAIT = 60\n"), s.says("Done."),
                   s.prompt("now the same for the pilot"),
                   edit(s, old="WAIT = 60\n", new="WAIT = PILOT_WAIT = 60\n"),
                   s.commits("Wait for 60 s"), s.says("Done.")),
        ["done: committed abc1234", "done: committed abc1234"],
    ),
    "a question that a failing check answers": (
        lambda s: (s.prompt("does it build for the tablet?"),
                   s.fails("cargo check --target arm", "error[E0433]: no `unix` in `os`", 101),
                   s.says("No. `src/serial.rs` opens the port by a raw descriptor, so it does not "
                          "build for the tablet at all; it would need another crate there, which "
                          "does the same for all of them.")),
        ["answered"],
    ),
    "a check that was asked for fails": (
        lambda s: (s.prompt("run the tests"), s.fails("pytest -q", "2 failed, 7 passed in 0.41s"),
                   s.says("Two of them fail.")),
        ["failed: `pytest -q` 2 failed"],
    ),
    "a program that is no known check refuses the change": (
        lambda s: (changed(s, "Make the tariff incremental"),
                   s.fails("tarifftool load tariff", "column updated_at does not exist", 1),
                   s.says("The incremental tariff can't work as things stand: it has no date.")),
        ["failed: `tarifftool load tariff` failed"],
    ),
    "a program that is no known check fails on the way": (
        lambda s: (changed(s, "Make the tariff incremental"),
                   s.fails("tarifftool load tariff", "column updated_at does not exist", 1),
                   s.says("The tariff is incremental now.")),
        ["changed: not verified"],
    ),
    "nothing was changed, and what should mend it fails": (
        lambda s: (s.prompt("the certificate of the mail server is not renewed, fix it"),
                   s.fails("ansible-playbook site.yml -t cert", "FAILED! => too many", 2),
                   s.says("The authority refuses: five certificates were made this week.")),
        ["failed: `ansible-playbook site.yml -t cert` failed"],
    ),
    "another file was committed": (
        lambda s: (changed(s), edit(s, TEST), s.ran(f"git add \\\n  {TEST}"),
                   s.commits("Test one connection per call"), s.says("Committed.")),
        ["changed: not verified"],
    ),
    "it was committed by name": (
        lambda s: (changed(s), s.ran("git add client.py ./pay"), s.commits("Use one connection"),
                   s.says("Committed.")),
        ["done: committed abc1234"],
    ),
    "committed in a later turn": (
        lambda s: (changed(s), s.says("Done."), s.prompt("commit this"),
                   s.commits("Use one connection per call"), s.says("Committed.")),
        ["done: committed abc1234", "done: committed abc1234"],
    ),
    "tested in a later turn": (
        lambda s: (changed(s), s.says("Done."), s.prompt("run the tests"),
                   s.ran("pytest -q", "9 passed in 0.31s"), s.says("They pass, all nine of them.")),
        ["done: `pytest -q` 9 passed", "answered: `pytest -q` 9 passed"],
    ),
    "taken back in the same turn": (
        lambda s: (changed(s), s.ran(f"git checkout -- {CLIENT}"), s.says("Reverted.")),
        [f"reverted: `git checkout -- {CLIENT}`"],
    ),
    "taken back in a later turn": (
        lambda s: (changed(s), s.says("Done."), s.prompt("that was wrong"),
                   s.ran("git restore ."), s.says("It is as it was before.")),
        ["reverted: `git restore .`", "talk"],
    ),
    "edited back": (
        lambda s: (changed(s), s.says("Done."), s.prompt("it drops idle connections"),
                   edit(s, old=NEW, new=OLD), s.says("The shared session is back.")),
        ["reverted: edited back", "answered"],
    ),
    "a commit of another session taken back": (
        lambda s: (s.prompt("Revert the commit abc1234"), s.ran("git revert --no-edit abc1234"),
                   s.ran("pytest -q", "9 passed in 0.31s"), s.says("It is reverted.")),
        ["done: `git revert --no-edit abc1234`; `pytest -q` 9 passed"],
    ),
    "a check passes in the next turn with nothing changed": (
        lambda s: (changed(s), s.fails("pytest -q", "=== 2 failed, 7 passed in 0.31s ==="),
                   s.says("Redis is missing."), s.prompt("it runs now, try again"),
                   s.ran("pytest -q", "9 passed in 0.31s"), s.says("They pass, all nine.")),
        ["done: `pytest -q` 9 passed", "answered: `pytest -q` 9 passed"],
    ),
    "another check passes in the next turn": (
        lambda s: (changed(s), s.fails("pytest -q", "=== 2 failed, 7 passed in 0.31s ==="),
                   s.says("Two fail."), s.prompt("run the client's alone"),
                   s.ran(f"pytest -q {TEST}", "3 passed in 0.1s"), s.says("They pass, all three.")),
        ["failed: `pytest -q` 2 failed", f"answered: `pytest -q {TEST}` 3 passed"],
    ),
    "what looks like the same text turned round is another edit": (
        lambda s: (s.prompt("Name them anew"), s.replaces(CLIENT, "a = 1", "b = 2\nc = 3"),
                   s.replaces(CLIENT, "b = 2", "c = 3\na = 1"), s.says("Done.")),
        ["changed: not verified"],
    ),
    "said to be taken back, and the same file is changed": (
        lambda s: (changed(s), s.says("Done."), s.prompt("Go back to the shared session, please"),
                   edit(s, new="session = shared(timeout=8)\n"), s.says("Done.")),
        ["reverted: “Go back to” in the next prompts", "changed: not verified"],
    ),
    "stashed and never taken out": (
        lambda s: (changed(s), s.ran("git stash"), s.says("Stashed.")),
        ["reverted: `git stash`"],
    ),
    "stashed and taken out again": (
        lambda s: (changed(s), s.ran("git stash && git pull && git stash pop"), s.says("Pulled.")),
        ["changed: not verified"],
    ),
    "another branch, a new one, or only unstaged": (
        lambda s: (changed(s), s.ran("git checkout main"), s.ran("git checkout -b retry"),
                   s.ran(f"git restore --staged {CLIENT}"), s.ran("git reset --soft HEAD~1"),
                   s.says("Moved to a branch.")),
        ["changed: not verified"],
    ),
    "one of two files taken back": (
        lambda s: (changed(s), edit(s, TEST), s.ran(f"git checkout -- {TEST}"), s.says("Done.")),
        ["changed: not verified"],
    ),
    "a commit taken back": (
        lambda s: (changed(s), s.commits("Use one connection per call"), s.says("Committed."),
                   s.prompt("revert that"), s.ran("git revert abc1234"), s.says("Reverted it.")),
        ["reverted: `git revert abc1234`", "done: `git revert abc1234`"],
    ),
    "reset, but kept on a branch": (
        lambda s: (changed(s), s.commits("Use one connection per call"),
                   s.ran("git branch retry && git reset --hard HEAD~1"), s.says("Moved.")),
        ["done: committed abc1234"],
    ),
    "the session ended in the midst of it": (
        lambda s: (changed(s),),
        ["open: broken off"],
    ),
    "broken off, and gone on with": (
        lambda s: (changed(s), s.prompt("and the test"), edit(s, TEST),
                   s.ran("pytest -q", "9 passed in 0.31s"), s.says("Done.")),
        ["done: `pytest -q` 9 passed", "done: `pytest -q` 9 passed"],
    ),
    "its plan was refused, and nothing came after it": (
        lambda s: (s.prompt("How could the client keep its sessions?"), s.reads(CLIENT),
                   s.refuses("ExitPlanMode", {"plan": "# Plan: Keep sessions open"})),
        ["open: plan not started"],
    ),
    "its plan was refused, and handed in again": (
        lambda s: (s.prompt("How could the client keep its sessions?"),
                   s.refuses("ExitPlanMode", {"plan": "# Plan: Keep sessions open"}),
                   changed(s, "Implement the following plan:\n\n# Plan: Keep sessions open"),
                   s.ran("pytest -q", "9 passed in 0.31s"), s.says("Done.")),
        ["talk", "done: `pytest -q` 9 passed"],
    ),
    "an edit was refused, and nobody went on with it": (
        lambda s: (changed(s), s.refuses("Edit", {"file_path": TEST}),
                   s.prompt("where do retries happen?"), s.says("In `send()`.")),
        ["open: broken off", "talk"],
    ),
    "stopped by the user after a run that failed, and gone on with": (
        lambda s: (changed(s), s.fails("pytest -q", "=== 2 failed, 7 passed in 0.31s ==="),
                   s.refuses("Bash", {"command": "rm -rf cache"}),
                   s.prompt("No, look at the pool first"), edit(s, CLIENT, NEW, NEW * 2),
                   s.ran("pytest -q", "9 passed in 0.31s"), s.says("Done.")),
        ["changed: not verified", "done: `pytest -q` 9 passed"],
    ),
    "stopped by the user, who then has the same command run": (
        lambda s: (changed(s), s.ran("pytest -q", "9 passed in 0.31s"),
                   s.refuses("Bash", {"command": "./app reindex"}),
                   s.prompt("proceed"), s.ran("./app reindex", "done"), s.says("It is indexed.")),
        ["done: `pytest -q` 9 passed", "talk"],
    ),
    "committed in another repository": (
        lambda s: (changed(s), edit(s, "/home/sam/other/cart.py"),
                   s.ran("cd /home/sam/other && git commit -am 'Mend the cart'",
                         "[main abc1234] Mend the cart"), s.says("Committed."),
                   s.prompt("thanks"), s.says("Bye.")),
        ["changed: not verified", "talk"],
    ),
    "most of it is edited back": (
        lambda s: (changed(s), edit(s, CLIENT, "retries = 1\n", "retries = 3\n"),
                   edit(s, CLIENT, "import shared\n", "import connect\n"), s.says("Done."),
                   s.prompt("why would you do that?"), edit(s, CLIENT, NEW, OLD),
                   edit(s, CLIENT, "retries = 3\n", "retries = 1\n"),
                   edit(s, CLIENT, "import connect\n", "import shared as connect\n"),
                   s.says("It is as it was.")),
        ["reverted: edited back", "changed: not verified"],
    ),
    "a check that is not there": (
        lambda s: (changed(s), s.ran("pytest -q", "9 passed in 0.31s"),
                   s.fails("mise run lint:full", "mise ERROR no task lint:full found"),
                   s.fails("ruff check .", "sh: no ruff here", 127), s.says("Done.")),
        ["done: `pytest -q` 9 passed"],
    ),
    "a linter complains of another file": (
        lambda s: (changed(s), s.ran("pytest -q", "9 passed in 0.31s"), edit(s),
                   s.fails("ruff check .", "pay/ledger.py:3:1: F401 `os` imported but unused"),
                   s.says("That was there before.")),
        ["changed: not verified"],
    ),
    "a linter complains of a changed file": (
        lambda s: (changed(s), s.fails("ruff check .", "pay/client.py:3:1: F401 `os` is not used"),
                   s.says("That was there before.")),
        ["failed: `ruff check .` failed"],
    ),
    "committed later in spite of a run that failed": (
        lambda s: (changed(s), s.ran("pytest -q", "=== 2 failed, 7 passed in 0.31s ==="),
                   s.says("These are of a clone."), s.prompt("commit"),
                   s.commits("Use one connection per call"), s.says("Committed.")),
        ["done: committed abc1234", "done: committed abc1234"],
    ),
    "committed in the same turn in spite of a run that failed": (
        lambda s: (changed(s), s.fails("pytest -q", "=== 2 failed, 7 passed in 0.31s ==="),
                   s.commits("Use one connection per call"), s.says("Committed.")),
        ["failed: `pytest -q` 2 failed"],
    ),
    "amended": (
        lambda s: (changed(s), s.commits("Use one connection"), s.says("Committed."),
                   s.prompt("and its test"), edit(s, TEST),
                   s.ran("git commit -a --amend --no-edit", "[main def5678] Use one connection"),
                   s.says("Amended.")),
        ["done: committed def5678", "done: committed def5678"],
    ),
    "squashed by a rebase, and listed": (
        lambda s: (changed(s), s.ran("git commit -am 'fixup! Use one connection'",
                                     "[main abc1234] fixup! Use one connection"),
                   s.ran("git rebase --autosquash HEAD~2", "Successfully rebased and updated x."),
                   s.ran("git log --oneline -2", "1234567 Use one connection\n7654321 Begin"),
                   s.says("Squashed.")),
        ["done: committed 1234567"],
    ),
    "rebased, and nobody told the new id": (
        lambda s: (changed(s), s.commits("Use one connection"),
                   s.ran("git pull --rebase", "Successfully rebased and updated main."),
                   s.says("Rebased.")),
        ["done: committed"],
    ),
    "somebody's text is no commit": (
        lambda s: (s.prompt("how is a command encoded?"),
                   s.ran("x='git commit -m \"hello; world\"'; echo $x"),
                   s.says("By percent signs.")),
        ["talk"],
    ),
    "prose was changed after the tests": (
        lambda s: (changed(s), s.ran("pytest -q", "9 passed in 0.31s"), edit(s, "README.md"),
                   s.says("Done.")),
        ["done: `pytest -q` 9 passed"],
    ),
    "a linter beside the tests is content": (
        lambda s: (changed(s), s.says("I check it now."),
                   s.ran("ruff check . ; pytest -q | grep -v passed; echo", "0 issues."),
                   s.says("Done.")),
        ["changed: not verified"],
    ),
    "it has it printed that it passed": (
        lambda s: (changed(s), s.ran("gofmt -w a.go\ngo build . 2>&1 | head && echo BUILD OK",
                                     "BUILD OK"), s.says("Done.")),
        ["done: `go build .` passed"],
    ),
    "it has it printed in spite of an error": (
        lambda s: (changed(s), s.ran("go build . 2>&1 | head && echo BUILD OK",
                                     "./client.go:3:5: undefined: connect\nBUILD OK"),
                   s.says("Done.")),
        ["changed: not verified"],
    ),
    "changed by a shell": (
        lambda s: (s.prompt("Use eight seconds"), s.ran(f"sed -i 's/6;/8;/' {CLIENT}"),
                   s.ran("git mv pay/a.py pay/b.py"), s.ran("pytest -q", "9 passed in 0.31s"),
                   s.says("Done.")),
        ["done: `pytest -q` 9 passed"],
    ),
    "changed by a script": (
        lambda s: (s.prompt("Use eight seconds"),
                   s.ran(f"python3 - <<'EOF'\nopen('{CLIENT}', 'w').write('x')\nEOF"),
                   s.says("Done.")),
        ["changed: not verified"],
    ),
    "a trial elsewhere changes nothing": (
        lambda s: (s.prompt("Is it the timeout?"), s.ran("cd /tmp && sed -i 's/6/8/' client.py"),
                   s.ran("mv todo/a.md done/a.md"), s.ran(f"rm -f {CLIENT}.orig"),
                   s.says("No, it is not the timeout.")),
        ["talk"],
    ),
    "merged": (
        lambda s: (s.prompt("merge it"), s.ran("gh pr merge 12 --squash"), s.says("Merged.")),
        ["done: `gh pr merge 12 --squash`"],
    ),
    "nothing but pushed": (
        lambda s: (s.prompt("and push"), s.ran("git push origin main"),
                   s.says("All three commits of the cart are on the branch now.")),
        ["done: `git push`"],
    ),
    "only tried to push, then opened a pull request": (
        lambda s: (s.prompt("draft PR please"), s.ran("git push --dry-run origin main"),
                   s.ran("git push -u origin cart"), s.ran("gh pr create --draft --fill"),
                   s.says("Opened it as a draft.")),
        ["done: `gh pr create`"],
    ),
    "an issue was answered": (
        lambda s: (s.prompt("tell them"), s.ran("gh issue comment 12 --body 'Fixed'"),
                   s.says("I have told them on the issue that the ferry is back.")),
        ["done: `gh issue comment 12`"],
    ),
    "an issue was only read": (
        lambda s: (s.prompt("what do they say?"), s.ran("gh issue view 12", "The ferry is late."),
                   s.says("They say that the ferry is late, and ask for a note at the pier.")),
        ["talk"],
    ),
    "a note was taken in a tracker": (
        lambda s: (s.prompt("try again"), s.ran("bd update av-12 --notes 'It is late'"),
                   s.says("It is late still: the pier is closed, and nobody knows until when.")),
        ["talk"],
    ),
    "an issue of a tracker was changed, and told of": (
        lambda s: (s.prompt("add the pier"), s.ran("bd update av-12 --notes 'The pier'"),
                   s.says("Updated av-12 with the pier.")),
        ["done: `bd update av-12`"],
    ),
    "a tracker's tool was used": (
        lambda s: (s.prompt("link it"), s._call("mcp__tracker__update_issue", {"id": "12"}, "ok"),
                   s.says("Linked the pull request to the issue of the ferry.")),
        ["done: `mcp__tracker__update_issue`"],
    ),
    "a folder was removed, and told of": (
        lambda s: (s.prompt("drop it"), s.ran("rm -rf skills/prose && ls skills"),
                   s.says("Removed the prose skill: it was tracked by nobody.")),
        ["done: `rm`"],
    ),
    "a scratch folder was removed": (
        lambda s: (s.prompt("does it build?"), s.ran("rm -rf build/out"),
                   s.says("It does, in a clean tree, with nothing left of the last build there.")),
        ["talk"],
    ),
    "nobody knows whether it was committed": (
        lambda s: (changed(s), s.starts("Bash", {"command": "git commit -m 'One connection'"})),
        ["changed: not verified"],
    ),
    "most of it was done two turns ago": (
        lambda s: (s.prompt("three changes"), edit(s), edit(s, TEST), edit(s, "pay/log.py"),
                   s.says("Done."), s.prompt("commit, and log it"), edit(s, "CHANGELOG.md"),
                   s.commits("One connection per call"), s.says("Committed.")),
        ["done: committed abc1234", "done: committed abc1234"],
    ),
    "put back in the same turn": (
        lambda s: (changed(s, "Do the tests notice it?"),
                   s.fails("pytest -q", "=== 2 failed, 7 passed in 0.31s ==="),
                   edit(s, old=NEW, new=OLD), s.ran("pytest -q", "9 passed in 0.31s"),
                   s.says("They do.")),
        ["answered: `pytest -q` 9 passed"],
    ),
    "the user has to decide": (
        lambda s: (s.prompt("what about the .gitignore?"),
                   s.says("It is ignored, or it is kept. Which would you like?")),
        ["open: asks the user"],
    ),
    "an offer decides nothing": (
        lambda s: (s.prompt("where do retries happen?"), s.reads(CLIENT),
                   s.says("In `send()`, three times with a backoff. Want me to change that?")),
        ["answered"],
    ),
    "a wrapper says that all is well, and the hook has refused the commit": (
        lambda s: (changed(s), s.ran("pytest -q", "9 passed in 0.31s"),
                   s.ran("rtk git commit -m 'One connection'",
                         "ok ✓ 1 file changed\nFAILED: git commit\nhusky - pre-commit script failed"
                         " (code 1)"),
                   s.says("The hook refuses it. Commit with --no-verify?")),
        ["done: not committed, `git commit` failed; `pytest -q` 9 passed"],
    ),
    "the commit was refused in a turn of its own": (
        lambda s: (changed(s), s.ran("pytest -q", "9 passed in 0.31s"), s.says("Done."),
                   s.prompt("commit"), s.ran("git commit -m 'One connection' 2>&1 | tail -3",
                                             "fatal: failed to write commit object"),
                   s.says("It is staged; run git commit yourself.")),
        ["done: `pytest -q` 9 passed", "open: `git commit` failed"],
    ),
    "the commit was refused, and is found in the log": (
        lambda s: (changed(s), s.ran("pytest -q", "9 passed in 0.31s"), s.says("Done."),
                   s.prompt("commit"), s.fails("git commit -m 'One connection'", "hook failed"),
                   s.ran("git log --oneline -1", "abc1234 One connection"),
                   s.says("It is there all the same.")),
        ["done: `pytest -q` 9 passed", "answered"],
    ),
    "changed again after the commit": (
        lambda s: (changed(s), s.commits("One connection per call"), edit(s, TEST),
                   s.says("Done, and a test for it.")),
        ["changed: not verified; changes after abc1234 not committed"],
    ),
    "changed again after the commit, and tested": (
        lambda s: (changed(s), s.commits("One connection per call"), edit(s, TEST),
                   s.ran("pytest -q", "9 passed in 0.31s"),
                   s.fails("git commit -am 'Test it'", "error: gpg failed to sign the data"),
                   s.says("Staged, just run git commit.")),
        ["done: changes after abc1234 not committed, `git commit` failed; `pytest -q` 9 passed"],
    ),
    "changed again after the commit, and amended": (
        lambda s: (changed(s), s.commits("One connection per call"), edit(s, TEST),
                   s.ran("git commit -a --amend --no-edit -q"), s.says("Done.")),
        ["done: committed"],
    ),
    "the next prompt came while it was looking": (
        lambda s: (s.prompt("Why does the first call fail?"), s.says("I look at the client."),
                   s.reads(CLIENT), s.ran("pytest -q", "9 passed in 0.31s"),
                   s.prompt("leave it"), s.says("Left.")),
        ["open: broken into by the next prompt", "talk"],
    ),
    "the next prompt came while it was changing something": (
        lambda s: (changed(s), s.says("Now the tests."), s.reads(TEST),
                   s.prompt("how old is the log?"), s.says("A day.")),
        ["open: broken into by the next prompt", "talk"],
    ),
    "a check failed, and the user stopped what came next": (
        lambda s: (changed(s), s.fails("pytest -q", "=== 2 failed, 7 passed in 0.31s ==="),
                   s.says("I look for the cause."), s.refuses("Bash", {"command": "pip list"}),
                   s.prompt("No, look at the pool first"), edit(s, CLIENT, NEW, NEW * 2),
                   s.ran("pytest -q", "9 passed in 0.31s"), s.says("Done.")),
        ["open: broken into by the next prompt", "done: `pytest -q` 9 passed"],
    ),
    "a part was committed, and the next prompt came while it went on": (
        lambda s: (changed(s), s.commits("One connection per call"), s.says("Now the second task."),
                   s.reads(TEST), s.prompt("how old is the log?"), s.says("A day.")),
        ["open: broken into by the next prompt", "talk"],
    ),
    "the client says that it was not the agent's last word": (
        lambda s: (s.prompt("Why does the first call fail?"), s.ran("pytest -q", "9 passed"),
                   s.says("The pool explains it. I try it now.", type="commentary"),
                   s.prompt("leave it"), s.says("Left.")),
        ["open: broken into by the next prompt", "talk"],
    ),
    "the changed task was run": (
        lambda s: (changed(s), s.ran("mise run fmt && mise run lint", "0 issues."),
                   s.says("Done.")),
        ["changed: only `mise run lint` passed"],
    ),
    "it was only formatted": (
        lambda s: (changed(s), s.ran("mise run fmt", ""), s.says("Done.")),
        ["changed: not verified"],
    ),
    "the next prompt wants something else in its place": (
        lambda s: (changed(s), s.ran("pytest -q", "9 passed in 0.31s"),
                   s.says("Are you happy with that?"),
                   s.prompt("no, we should NOT do it in the client and instead in the pool"),
                   edit(s, old="x = 1\n", new="y = 2\n"), edit(s, "pay/pool.py"),
                   s.ran("pytest -q", "9 passed in 0.31s"), s.says("Moved.")),
        ["reverted: “should NOT do it in the client and instead” in the next prompts",
         "done: `pytest -q` 9 passed"],
    ),
    "the user has to try something": (
        lambda s: (s.prompt("why is the banner shown?"), s.reads(CLIENT),
                   s.says("With --silent nothing is shown. Can you try it without, please?")),
        ["open: asks the user"],
    ),
    "what would show it is explained": (
        lambda s: (s.prompt("why is no banner shown?"), s.reads(CLIENT),
                   s.says("With --silent nothing is shown. You'd need to run it without it.")),
        ["answered"],
    ),
    "a review that tried the tests": (
        lambda s: (s.prompt("review the client"), s.replaces("test_client.py", "== 1", "!= 1"),
                   s.replaces("test_client.py", "!= 1", "== 1 "),
                   s.ran("pytest -q", "9 passed in 0.2s"),
                   s.says("# Review of the whole client\n\nThe pool is never closed.")),
        ["answered: `pytest -q` 9 passed"],
    ),
    "the user is asked at the end": (
        lambda s: (s.prompt("two builds, one private?"), s.reads(CLIENT),
                   s.says("One file has the code, one has stubs. Is that what you have in mind?")),
        ["open: asks the user"],
    ),
    "small talk": (
        lambda s: (s.prompt("thanks"), s.says("You are welcome!")),
        ["talk"],
    ),
}  # fmt: skip


@each("name", HISTORIES)
def test_a_turn_is_judged_by_what_happened(name):
    tell, expected = HISTORIES[name]
    story = Story()
    tell(story)
    assert judged(story) == expected


def test_a_commit_is_of_the_turn_in_which_most_of_it_was_done_else_of_the_last():
    story = Story()
    HISTORIES["most of it was done two turns ago"][0](story)
    changes = Changes(story.turns()).follow()
    assert [len(found) for found in changes.commits_by_turn(LOOK_BACK)] == [1, 0]
    story = Story()
    for file in (CLIENT, TEST):
        story.prompt("change it")
        edit(story, file)
        story.says("Done.")
    story.commits("One connection per call")
    changes = Changes(story.turns()).follow()
    assert [len(found) for found in changes.commits_by_turn(LOOK_BACK)] == [0, 1]


def test_a_commit_that_was_amended_is_known_by_its_new_name():
    story = Story()
    changed(story)
    story.commits("Close the note, nothing is left")
    story.says("Committed.")
    story.prompt("there are 25 left")
    edit(story, "pay/log.py")
    story.ran("git commit --amend -m 'Fix the 25 warnings'",
              "[main bcd2345] Fix the 25 warnings\n 2 files changed")  # fmt: skip
    changes = Changes(story.turns()).follow()
    assert [made.commit.subject for made in changes.commits] == ["Fix the 25 warnings"]


steps = st.lists(
    st.sampled_from([
        "prompt", "edit", "edit back", "pass", "fail", "commit", "git stash", "git stash pop",
        "git checkout -- pay/client.py", "git reset --hard HEAD~1", "git revert HEAD", "says",
        "amend", "git pull --rebase", "refuse", "sed -i 's/6/8/' pay/client.py",
    ]),
    max_size=30,
)  # fmt: skip


@given(steps)
def test_later_turns_than_those_that_count_change_nothing(names):
    """So that looking at the last turns alone gives the same."""
    story = Story()
    story.prompt("Begin with the client")
    for name in names:
        match name:
            case "prompt":
                story.prompt("and now the next thing")
            case "edit":
                edit(story)
            case "edit back":
                edit(story, old=NEW, new=OLD)
            case "pass":
                story.ran("pytest -q", "9 passed in 0.31s")
            case "fail":
                story.fails("pytest -q", "=== 2 failed in 0.31s ===")
            case "commit":
                story.commits("Use one connection per call")
            case "amend":
                story.ran("git commit -a --amend --no-edit", "[main def5678] Use one connection")
            case "git pull --rebase":
                story.ran(name, "Successfully rebased and updated main.")
            case "refuse":
                story.refuses("ExitPlanMode", {"plan": "# Keep sessions open"})
            case "says":
                story.says("It is done, as far as I can see.")
            case _:
                story.ran(name)
    turns = story.turns()
    whole = judge_turns(Changes(turns).follow(), LOOK_BACK)
    assert {one.word for one in whole} <= set(STATUSES)
    for end in range(1, len(turns)):
        part = judge_turns(Changes(turns[:end]).follow(), LOOK_BACK)
        settled = max(end - LOOK_BACK - 1, 0)
        assert part[:settled] == whole[:settled]
