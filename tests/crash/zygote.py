"""A process that has imported yester once and forks: a real process to kill costs 10 ms, not 400.

stdin     {"words": ["--home", …],       run this command of yester in a child, with these
           "out": FILE, "environ": {},   variables and this file for its output; killed when it is
           "kill_at": N}                 about to touch a file below this home for the Nth time
          {"open": HOME, "steps": […]}   open the store of this home, with these migrations
stdout    the child's pid, then, when it has ended, what became of it (-9: killed)
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import sys
import termios
from functools import partial
from pathlib import Path


def main() -> None:
    os.setsid()  # a person types these commands: there is a terminal behind them
    _keyboard, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    import yester.faces.cli.forget
    import yester.faces.cli.index
    import yester.faces.cli.install
    import yester.faces.cli.services
    import yester.worker.worker  # noqa: F401

    assert len(list(Path("/proc/self/task").glob("*"))) < 2, "a thread does not survive a fork"
    say("ready")
    line = sys.stdin.readline()
    while line:
        pid = os.fork()
        if not pid:
            child(json.loads(line))
        say(pid)
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        say(ended.si_status * (1 if ended.si_code == os.CLD_EXITED else -1))
        # Stays a zombie until the next one is wanted: nobody else gets its pid and is killed.
        if not (line := sys.stdin.readline()):
            break
        os.waitpid(pid, 0)


def say(word: object) -> None:
    os.write(1, f"{word}\n".encode())


def child(wanted: dict) -> None:
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(os.open(wanted.get("out", os.devnull), os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
    os.environ.update(wanted.get("environ", {}))
    if wanted.get("kill_at"):
        kill_at(wanted["kill_at"], wanted["words"][1])
    code = 70
    try:
        if "open" in wanted:
            open_home(wanted["open"], wanted["steps"])
            code = 0
        else:
            from yester.faces.cli.app import main as yester

            sys.argv = ["yester", *wanted["words"]]
            yester()
    except SystemExit as stop:
        code = int(stop.code or 0)
    except BaseException:  # noqa: BLE001 -- told, and then it ends
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def kill_at(number: int, home: str) -> None:
    """SIGKILL before the so-many-th thing that is done to a file of this home."""
    left = number

    def look(event: str, args: tuple) -> None:
        nonlocal left
        if any(isinstance(one, str | Path) and str(one).startswith(home) for one in args):
            left -= event == "open" or event.startswith(("os.", "shutil."))
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(look)


def open_home(home: str, steps: list) -> None:
    from yester.operate.backups import make_backup
    from yester.store import open_store
    from yester.store.migrate import Migration

    now = 1_770_000_000_000
    open_store(
        Path(home), now=now, steps=[Migration(*step) for step in steps],
        before_migration=partial(make_backup, home=Path(home), kept=99, now=now),
    ).close()  # fmt: skip


if __name__ == "__main__":
    main()
