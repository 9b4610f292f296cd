"""`python3 -I -S hook.py EVENT [CLIENT [armed]]`: stdin into the spool, wake the worker, exit 0.
Always.

It runs at every tool call and is compiled every time: so it is short and takes only modules which
the interpreter has loaded by itself. What is rare, slow or wants an answer stands in ask.py.
"""

import sys
import time

try:
    import posix
except ImportError:  # Windows: there is no worker yet, and the agent goes on
    raise SystemExit from None

ASKING = (b"SessionStart", b"UserPromptSubmit", b"PreToolUse", b"SubagentStart")
HINTS = b"""CLAUDECODE CLAUDE_CODE_SESSION_ID CLAUDE_PROJECT_DIR COPILOT_CLI GEMINI_SESSION_ID
YESTER_SKIP_TOOLS YESTER_BATCH_WINDOW_MS CLAUDE_MEM_SKIP_TOOLS CLAUDE_MEM_BATCH_WINDOW_MS
YESTER_CROSS_PROJECT CLAUDE_MEM_CROSS_PROJECT YESTER_MAX_INJECT
YESTER_RECENCY_HALFLIFE_DAYS CLAUDE_MEM_RECENCY_HALFLIFE_DAYS""".split()


def ours(home: bytes, env: dict[bytes, bytes]) -> bool:
    """At a glance: a folder of this user alone, in no repository. If not, ask.py looks closely."""
    found, here = posix.stat(home), [posix.stat(env.get(b"CLAUDE_PROJECT_DIR", b"."))[1:3]]
    here.append(posix.stat(b".")[1:3])  # inode, device
    good = home[:1] == b"/" and found.st_uid == posix.getuid() and not found.st_mode & 0o077
    while good and (up := posix.stat(home := home + b"/.."))[1:3] != found[1:3]:
        good = found[1:3] not in here and not posix.access(home + b"/.git", 0)
        found = up
    return good


def put(spool: bytes, name: bytes, data: bytes, sync: bool = True) -> None:
    file = posix.open(spool + b"/tmp/" + name, posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL, 0o600)
    left = memoryview(data)
    while left:
        left = left[posix.write(file, left) :]
    if sync:
        posix.fsync(file)
    posix.rename(spool + b"/tmp/" + name, spool + b"/new/" + name)  # returned: acknowledged


def armed(home: bytes, event: bytes, data: bytes) -> bool:
    """Do words stand in it about which the worker has something to say? run/armed has them."""
    try:
        lines = posix.read(posix.open(home + b"/run/armed", posix.O_RDONLY), 1 << 17).split(b"\n")
    except OSError:
        return False
    words = [line[len(event) + 1 :] for line in lines if line.startswith(event + b" ")]
    ends = data if len(data) < 1 << 16 else data[: 1 << 15] + data[-(1 << 15) :]
    return any(word in ends for word in words if word)


def main(event: bytes, client: bytes, quiet: bool, env: dict[bytes, bytes]) -> None:
    if client not in (b"", b"claude-code"):  # what Claude Code sets, an agent around it has left
        env = {name: env[name] for name in env if name not in HINTS[:3]}
    began = time.monotonic()
    name = b"%d-%d-%b" % (time.time_ns(), posix.getpid(), posix.urandom(4).hex().encode())
    data = b"".join(iter(lambda: posix.read(0, 1 << 18), b""))
    hints = [b"%b=%b" % (hint, env[hint]) for hint in HINTS if hint in env]
    hints += [b"client=" + client] if client else []
    try:
        words = [b"yester/1", event, b"cwd=" + posix.getcwdb(), *hints]
    except OSError:  # the folder is gone
        words = [b"yester/1", event, *hints]
    head = b"\t".join([word.replace(b"\t", b" ") for word in words])  # a value must stay one
    data = head.replace(b"\n", b" ") + b"\n" + data
    home, asks = env.get(b"HOME", b"") + b"/.yester", event in ASKING and not quiet
    try:
        usual = not (b"YESTER_OFF" in env or b"YESTER_HOME" in env)
        usual = usual and __file__.encode().startswith(home[:-7])  # installed there: its own HOME
        if usual := usual and not posix.access(home + b"/run/rules", 0) and ours(home, env):
            asks = asks or armed(home, event, data)
            if quiet and not asks:
                return  # what comes of it is told behind it
            put(home + b"/spool", name, data)
    except OSError:
        usual = False
    if not usual or asks:
        sys.path.append(__file__.rpartition("/")[0] or ".")
        from ask import ask, rare  # type: ignore[import-not-found,unused-ignore]

        home = home if usual else rare(event, name, data, env, put)
        asks = asks or (bool(home) and armed(home, event, data))
    if home and asks:
        ask(home, event, name, data, began, env)
    elif home:
        posix.write(posix.open(home + b"/run/wake", posix.O_WRONLY | posix.O_NONBLOCK), b".")


try:
    quiet = sys.argv[3:] == ["armed"]  # asks only about words of run/armed
    main(sys.argv[1].encode(), "".join(sys.argv[2:3]).encode(), quiet, posix.environ)
except BaseException:  # noqa: BLE001 -- whatever is wrong here must not reach the agent
    pass
posix._exit(0)
