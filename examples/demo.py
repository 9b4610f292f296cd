"""Shows yester at work: indexes the sample sessions into a store of its own, asks three things,
distils them and opens the door of the viewer.

Run by `make demo`, or: python examples/demo.py [FOLDER]. The store goes into FOLDER (default: .demo
in the repository) and nowhere else; running it again reads nothing twice.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

QUESTIONS = {
    "What was decided, and why?": ("why did we drop redis", "-n", "3"),
    "An error and what ended it": ("deadlock at checkout", "-n", "4", "--order", "date_asc"),
    "What have I told my agents?": ("never always", "--kind", "prompt", "-n", "4"),
}

NEXT = """
The link works once, for a minute; another one: {yester} --home {home} ui
The server ends by itself some hours after the last question; to end it at once:
    {yester} --home {home} serve --stop

The store of this demo is {home}; remove the folder and it is gone.
With your own sessions (they stay where they are, and nothing leaves this machine):

    {yester} index
    {yester} recall "something you remember only half"
    {yester} install        (shows what it would change in your agents' settings, and asks first)
"""


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()  # the command that follows writes to the same place


def run(home: Path, *words: str) -> None:
    """The real command with its own output; its failure is ours."""
    say("$ yester " + " ".join(f'"{word}"' if " " in word else word for word in words))
    command = [sys.executable, "-m", "yester", "--home", str(home), *words]
    env = {**os.environ, "HOME": str(home)}  # the account need not record a home of samples
    if code := subprocess.run(command, cwd=ROOT, check=False, env=env).returncode:  # noqa: S603
        sys.exit(code)


def main() -> None:
    home = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / ".demo").absolute()
    run(home, "index", "--no-vectors", "examples/sessions")
    for title, words in QUESTIONS.items():
        say(f"\n# {title}")
        run(home, "recall", *words)
    say("\n# What came of each turn, by evidence: from now on questions find that first")
    run(home, "distil", "--backfill")
    say("\n# In the browser")
    run(home, "ui", "--print")
    installed = Path(sys.executable).with_name("yester")
    say(NEXT.format(home=home, yester=installed if installed.exists() else "yester"))


if __name__ == "__main__":
    main()
