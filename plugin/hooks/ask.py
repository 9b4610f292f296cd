"""The other half of hook.py: answers from the worker, starting it, and all that is not usual.

Stands beside hook.py wherever that is copied, and runs on any Python from 3.9 without yester being
importable. It keeps to its deadlines: a worker that hangs costs 0.28 s, none costs nothing.
"""

import posix
import time

TYPE_CHECKING = False  # the name type checkers know; importing typing would cost more than all else
if TYPE_CHECKING:
    import _socket
    from collections.abc import Callable, Iterator

    Env = dict[bytes, bytes]
    Ours = Callable[[bytes], bool]
    Put = Callable[[bytes, bytes, bytes, bool], None]

PATIENCE = 0.28  # seconds from the hook's beginning; the client waits for us
COLD_PATIENCE = 1.4  # SessionStart, when the worker has only just been started
PAUSE = 10.0  # seconds between two attempts of prompts to start a worker that does not come
_PATH = b"/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin"
_HINT = (
    b'{"systemMessage": "yester: no worker is running, so nothing is remembered for this session '
    b'yet. Run: yester worker start"}'
)


def ask(
    home: bytes, event: bytes, name: bytes, data: bytes, began: float, env: "Env", ours: "Ours"
) -> None:
    """Print what the worker wants the agent to know; nothing when it is not there in time. Then say
    so: only what was printed counts as told, and a start block that was not comes with a prompt."""
    request = b"POST /hook?id=" + name + b"&ack=1 HTTP/1.0\r\n\r\n"
    starts, prompted = event == b"SessionStart", event == b"UserPromptSubmit"
    # before the current folder changes
    runtime = _runtime(env, ours) if starts or prompted else None
    if home[:1] != b"/":
        home = posix.getcwdb() + b"/" + home
    found, worker = _exchange(home, request, began + PATIENCE)
    if found is None and starts:
        _remove(home + b"/run/trouble")
        if _launch(home, runtime):
            bare = data.replace(b" ", b"")
            again = b'"source":"resume"' in bare or b'"source":"compact"' in bare
            patience = 0.0 if again else COLD_PATIENCE  # the user is in the middle of something
            while found is None and time.monotonic() < began + patience:
                time.sleep(0.01)
                found, worker = _exchange(home, request, began + patience)
                if not found and b"CLAUDECODE" in env:
                    found = _read(home + b"/run/trouble") or found  # why it could not start
        elif b"CLAUDECODE" in env:
            found = _HINT
    elif found is None and prompted:
        _launch(home, runtime, PAUSE)  # it has died or idled out: the next prompt is answered
    found = found or b""
    while found:
        found = found[posix.write(1, found) :]
    try:
        if worker:
            worker.send(b".")
    except OSError:
        pass  # one of 0.1 does not listen any more


def _exchange(
    home: bytes, request: bytes, deadline: float
) -> "tuple[bytes | None, _socket.socket | None]":
    """The body of the worker's answer, b"" if it gave none in time, None where nobody listens; and
    the socket to acknowledge it, where it is whole."""
    import _socket

    client = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        posix.chdir(home + b"/run")  # a socket's name must be short, the home's need not be
        client.settimeout(max(deadline - time.monotonic(), 0.001))
        client.connect(b"worker.sock")
    except OSError as error:
        late = isinstance(error, TimeoutError) or "timed out" in str(error)
        return b"" if late else None, None
    answer = b""
    try:
        client.send(request)
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return b"", None
            client.settimeout(left)
            part = client.recv(1 << 16)
            if not part:
                break
            answer += part
    except OSError:
        return b"", None  # half an answer is none
    head, _, body = answer.partition(b"\r\n\r\n")
    whole = b"\r\nContent-Length: %d\r\n" % len(body) in head + b"\r\n"
    return (body, client) if whole and head.startswith(b"HTTP/1.0 200") else (b"", None)


def _runtime(env: "Env", ours: "Ours") -> "bytes | None":
    """A second place for the spool, where it is ours."""
    try:
        named = env[b"XDG_RUNTIME_DIR"]
        return named if named[:1] == b"/" and ours(named) else None
    except (KeyError, OSError):
        return None


def _launch(home: bytes, runtime: "bytes | None", pause: float = 0.0) -> bool:
    """Start the worker as run/launch says, in a session of its own that knows nothing of ours; not
    where that was done less than `pause` seconds ago, which the file's own time tells."""
    try:
        file = posix.open(home + b"/run/launch", posix.O_RDONLY)
        found = posix.fstat(file)
        words = posix.read(file, 1 << 16).split(b"\n")[:-1]
        posix.close(file)
        meant = posix.stat(words[words.index(b"--home") + 1])[1:3] == posix.stat(home)[1:3]
    except (OSError, ValueError, IndexError):
        return False
    if found.st_uid != posix.getuid() or found.st_mode & 0o077 or not meant:
        return False
    if abs(time.time() - found.st_mtime) < pause:
        return False
    try:
        posix.utime(home + b"/run/launch")  # works on a full disk
    except OSError:
        if pause:
            return False  # else it would be started at every prompt
    import pwd

    clean = {b"HOME": pwd.getpwuid(posix.getuid()).pw_dir.encode(), b"PATH": _PATH}
    clean[b"LANG"] = b"C.UTF-8"
    if runtime:
        clean[b"XDG_RUNTIME_DIR"] = runtime
    child = posix.fork()
    if child:
        posix.waitpid(child, 0)
        return True
    try:
        posix.setsid()
        if not posix.fork():
            posix.chdir(b"/")
            posix.umask(0o077)
            null = posix.open(b"/dev/null", posix.O_RDWR)
            for number in (0, 1, 2):
                posix.dup2(null, number)
            posix.closerange(3, 256)
            posix.execve(words[0], words, clean)
    finally:
        posix._exit(0)


# --- the cases that are not usual ---------------------------------------------------------------


def rare(
    event: bytes, name: bytes, data: bytes, env: "Env", ours: "Ours", put: "Put"
) -> "bytes | None":
    """Store the event where that is allowed and possible; the home to ask, or None."""
    home = _home(env, ours)
    if home is None:
        return None
    head, _, payload = data.partition(b"\n")
    if _says_off(env):
        if event == b"SessionStart":  # its transcript must stay out as well: name the session
            put(home + b"/spool", name, head + b"\toff=1\n" + _who(payload), True)
        return None
    rules = _rules(home)
    if _forbidden(rules, env, payload):
        return None
    sync = "nosync" not in rules
    _remove(home + b"/spool/tmp/" + name)  # half of the usual way may have been gone already
    try:
        put(home + b"/spool", name, data, sync)
        return home
    except OSError:
        _remove(home + b"/spool/tmp/" + name)
    try:
        if runtime := _runtime(env, ours):
            _make(runtime + b"/yester")
            put(runtime + b"/yester/spool", name, data, sync)
            return home
    except OSError:
        pass
    try:
        posix.utime(home + b"/run/gap")  # works on a full disk; `yester doctor` tells of it
    except OSError:
        pass
    return None


def _home(env: "Env", ours: "Ours") -> "bytes | None":
    """$YESTER_HOME if it is ours, else ~/.yester, which is made if need be."""
    named = env.get(b"YESTER_HOME")
    try:
        if named and ours(named):
            _make(named)
            return named
    except OSError:
        pass
    import pwd

    own = pwd.getpwuid(posix.getuid()).pw_dir.encode()
    for user in (env.get(b"HOME", own), own):
        try:
            if posix.stat(user).st_uid == posix.getuid() and (user == own or _outside(user)):
                _make(user + b"/.yester")
                return user + b"/.yester"
        except OSError:
            pass
    return None


def _outside(path: bytes) -> bool:
    found, here = posix.stat(path), posix.stat(b".")
    while True:
        path += b"/.."
        up = posix.stat(path)
        if up[1:3] == found[1:3]:
            return True
        if found[1:3] == here[1:3]:
            return False
        found = up


def _make(home: bytes) -> None:
    for folder in (b"", b"/run", b"/spool", b"/spool/tmp", b"/spool/new"):
        try:
            posix.mkdir(home + folder, 0o700)
        except OSError:
            pass  # it is there, or `put` will fail


def _says_off(env: "Env") -> bool:
    return env.get(b"YESTER_OFF", b"0").lower() not in (b"", b"0", b"false")


def _who(payload: bytes) -> bytes:
    """The payload without anything that was said."""
    import json

    try:
        told = json.loads(payload)
        kept = {key: told[key] for key in ("session_id", "sessionId", "cwd") if key in told}
        return json.dumps(kept).encode()
    except (ValueError, TypeError):
        return b"{}"


def _rules(home: bytes) -> "list[str]":
    """run/rules, which yester has written from its settings."""
    return _read(home + b"/run/rules").decode("utf-8", "surrogateescape").split("\n")


def _forbidden(rules: "list[str]", env: "Env", payload: bytes) -> bool:
    """Do the rules keep this folder or session out?"""
    here = list(_upwards(posix.getcwd()))
    session = _session(payload, env) if any(rule[:8] == "session " for rule in rules) else ""
    for rule in rules:
        kind, _, what = rule.partition(" ")
        if kind == "all" or (kind == "session" and what and what == session):
            return True
        if kind == "path" and (what in here or _matches(what, here)):
            return True
    return False


def _session(payload: bytes, env: "Env") -> str:
    """The payload names the session; the variable may be that of an agent around this one."""
    import json

    try:
        named = json.loads(payload).get("session_id")
    except (ValueError, AttributeError, RecursionError):
        named = ""
    if isinstance(named, str) and named:
        return named
    return env.get(b"CLAUDE_CODE_SESSION_ID", b"").decode("utf-8", "replace")


def _matches(pattern: str, paths: "list[str]") -> bool:
    if not any(sign in pattern for sign in "*?["):
        return False
    from fnmatch import fnmatchcase

    return any(fnmatchcase(path, pattern) for path in paths)


def _upwards(path: str) -> "Iterator[str]":
    while path:
        yield path
        path = path.rpartition("/")[0]
    yield "/"


def _read(path: bytes) -> bytes:
    try:
        return posix.read(posix.open(path, posix.O_RDONLY), 1 << 20)
    except OSError:
        return b""


def _remove(path: bytes) -> None:
    try:
        posix.unlink(path)
    except OSError:
        pass
