"""The other half of hook.py: answers from the worker, starting it, and all that is not usual.

Stands beside hook.py wherever that is copied, and runs on any Python from 3.9 without yester being
importable. It keeps to its deadlines: a worker that hangs costs 0.28 s, none costs nothing.
"""

import sys
import time

try:
    import posix
except ImportError:  # Windows, where no hook asks, and commands use little of this
    import os as posix  # type: ignore[no-redef,unused-ignore]

TYPE_CHECKING = False  # the name type checkers know; importing typing would cost more than all else
if TYPE_CHECKING:
    import _socket
    from collections.abc import Callable, Iterator

    Env = dict[bytes, bytes]
    Folders = set[tuple[int, ...]]  # as `identify_folder` names them
    Put = Callable[[bytes, bytes, bytes, bool], None]

_user_number = getattr(posix, "getuid", lambda: 0)  # Windows has no numbers of users
PATIENCE = 0.28  # seconds from the hook's beginning; the client waits for us
COLD_PATIENCE = 1.4  # SessionStart, when the worker has only just been started
LONGEST_RUN = 88  # bytes of a socket's folder; systems allow paths of 104 or 108
PAUSE = 10.0  # seconds between two attempts of prompts to start a worker that does not come
_PATH = b"/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin"
# Where pip --user, pipx and uv put a program, below the account's folder.
_PROGRAMS = (
    b"/.local/bin/yester",
    b"/.local/share/pipx/venvs/yester/bin/yester",
    b"/.local/pipx/venvs/yester/bin/yester",
    b"/.local/share/uv/tools/yester/bin/yester",
    b"/Library/Application Support/pipx/venvs/yester/bin/yester",
    b"/Library/Python/%d.%d/bin/yester" % sys.version_info[:2],
)
_NOT_INSTALLED = (
    "the package is not installed for this account, so nothing is remembered. "
    "Run: pipx install yester"
)
# What the processes of clients are called; node's own name for its main thread among them.
_CLIENTS = (b"claude", b"node", b"node-MainThread", b"MainThread", b"bun", b"codex", b"copilot",
            b"gemini", b"opencode", b"qwen", b"cursor-agent")  # fmt: skip
_ANCESTORS = 6  # processes above a hook, among which its client is
_notices: "list[str]" = []  # what the session is told besides the worker's answer


def ask(home: bytes, event: bytes, name: bytes, data: bytes, began: float, env: "Env") -> None:
    """Print what the worker wants the agent to know; nothing when it is not there in time. Then say
    so: only what was printed counts as told, and a start block that was not comes with a prompt."""
    request = b"POST /hook?id=" + name + b"&ack=1 HTTP/1.0\r\n\r\n"
    found, worker = exchange(home + b"/run", request, began + PATIENCE)
    if found is None and event == b"SessionStart":
        _attempt(posix.unlink, home + b"/run/trouble")
        if _launch_worker(home, env):
            bare = data.replace(b" ", b"")
            again = b'"source":"resume"' in bare or b'"source":"compact"' in bare
            patience = 0.0 if again else COLD_PATIENCE  # the user is in the middle of something
            while found is None and time.monotonic() < began + patience:
                time.sleep(0.01)
                found, worker = exchange(home + b"/run", request, began + patience)
                if not found and b"CLAUDECODE" in env:
                    found = read_file(home + b"/run/trouble") or found  # why it could not start
        elif b"CLAUDECODE" in env:
            _notices.append(_NOT_INSTALLED)
    elif found is None and event == b"UserPromptSubmit":
        _launch_worker(home, env, PAUSE)  # it has died or idled out: the next prompt is answered
    _print_answer(found or b"")
    if worker:
        _attempt(worker.send, b".")  # one of 0.1 does not listen any more


def _print_answer(answer: bytes) -> None:
    """Print it, with what else there is to say: the client reads one JSON object."""
    if _notices:
        import json

        told = json.loads(answer or b"{}")
        said = " ".join(_notices)
        if "systemMessage" in told:
            said += " " + told["systemMessage"]
        answer = json.dumps({**told, "systemMessage": "yester: " + said}).encode()
    while answer:
        answer = answer[posix.write(1, answer) :]


def exchange(
    run: bytes, request: bytes, deadline: float
) -> "tuple[bytes | None, _socket.socket | None]":
    """The body of the worker's answer, b"" if it gave none in time, None where nobody listens; and
    the socket to acknowledge it, where it is whole."""
    import _socket

    client = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    answer, name, listens, here = b"", run + b"/worker.sock", False, -1
    try:
        if len(run) > LONGEST_RUN:
            here = posix.open(b".", posix.O_RDONLY)
            posix.chdir(run)
            name = b"worker.sock"
        client.settimeout(max(deadline - time.monotonic(), 0.001))
        client.connect(name)
        listens = True
        client.sendall(request)
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            client.settimeout(left)
            part = client.recv(1 << 16)
            if not part:
                break
            answer += part
        head, _, body = answer.partition(b"\r\n\r\n")
        whole = b"\r\nContent-Length: %d\r\n" % len(body) in head + b"\r\n"
        if whole and head.startswith(b"HTTP/1.0 200"):
            return body, client
    except OSError as error:
        listens = listens or isinstance(error, TimeoutError) or "timed out" in str(error)
    finally:
        if here >= 0:
            posix.fchdir(here)
            posix.close(here)
    client.close()
    return b"" if listens else None, None  # half an answer is none


def _launch_worker(home: bytes, env: "Env", pause: float = 0.0) -> bool:
    """Start the worker in a session of its own that knows nothing of ours; not where that was done
    less than `pause` seconds ago, which the time of run/launch tells."""
    stamp = home + b"/run/launch"
    last = _look_at(stamp)
    if last and abs(time.time() - last.st_mtime) < pause:
        return False
    projects = find_projects(env)
    accounts = find_accounts(env, projects)
    if not is_usual(home, accounts) and find_record(home, accounts) is None:
        return False  # whose settings would it work with?
    program = find_program(home, accounts, projects)
    if program is None:
        return False
    try:
        posix.close(posix.open(stamp, posix.O_RDONLY | posix.O_CREAT, 0o600))
        posix.utime(stamp)  # works on a full disk
    except OSError:
        if pause:
            return False  # else it would be started at every prompt
    words, account = program
    clean = {b"HOME": account, b"PATH": _PATH, b"LANG": b"C.UTF-8"}
    if runtime := _find_runtime(env, projects):
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


# --- which folder and which program: the rule, for hooks and commands alike -----------------------


def identify_folder(path: bytes) -> "tuple[int, ...]":
    """What a folder is, by whatever name: inode and device."""
    return posix.stat(path)[1:3]


def _upwards(path: bytes) -> "Iterator[tuple[bytes, tuple[int, ...]]]":
    """The folder and those above it: a path to each, and what it is."""
    folder = None
    while (up := identify_folder(path)) != folder:
        yield path, up
        path, folder = path + b"/..", up


def find_projects(env: "Env", here: bytes = b".") -> "Folders":
    """What a repository may have filled: the current folder, the one that the client names, and
    every git top level they lie in. `/` is none."""
    found = set()
    for path in (here, env.get(b"CLAUDE_PROJECT_DIR", b"")):
        try:
            found.add(identify_folder(path))
            found |= {above for up, above in _upwards(path) if posix.access(up + b"/.git", 0)}
        except OSError:
            pass  # not named, or gone
    return found - {identify_folder(b"/")}


def find_accounts(env: "Env", projects: "Folders") -> "list[bytes]":
    """The user's home folders: $HOME, unless a project may have named it, and the system's word."""
    named, own = env.get(b"HOME", b""), _account_folder()
    found = [named] if _is_own(b"HOME", named) and not _lies_in(named, projects) else []
    if not (found and _is_same(own, named)):
        found.append(own)
    return [folder for folder in found if _is_users(folder)]


def explain_refusal(path: bytes, projects: "Folders", spared: bytes = b"") -> str:
    """Why this folder is not used for memories; "" where it is. The account's own folder is no
    project, even for who works in it; nor is the one in `spared`."""
    if path[:1] != b"/":
        return "is not absolute"
    try:
        found = posix.stat(path)
    except OSError as error:
        return "cannot be used (%s)" % error.strerror
    if found.st_mode & 0o170000 != 0o040000:
        return "is not a folder"
    if found.st_uid != _user_number():
        return "belongs to another user"
    if found.st_mode & 0o077:
        return "is open to other users"
    if _lies_in(path, projects) and _lies_in(path, _without(projects, spared, _account_folder())):
        return "lies inside the current folder, its repository or the client's project"
    return ""


def find_record(home: bytes, accounts: "list[bytes]") -> "tuple[bytes, bytes] | None":
    """A home that the user has used with the command: its path and the Python of that command, as
    the account's own home has them. The latest counts. It may be away now, under any name."""
    from os.path import realpath

    names = (home, realpath(home))
    for account in accounts:
        for line in reversed(_read_own(account + b"/.yester/homes").split(b"\n")):
            path, _, python = line.partition(b"\t")
            if path and (path in names or _is_same(path, home)):
                return path, python
    return None


def is_usual(home: bytes, accounts: "list[bytes]") -> bool:
    """Is it the account's own home?"""
    return any(_is_same(home, account + b"/.yester") for account in accounts)


def judge_home(named: bytes, env: "Env", projects: "Folders") -> "tuple[str, bool]":
    """$YESTER_HOME: why it is not used ("": it is), and whether the user has ever used it. A
    repository can set variables, so the name alone is not enough."""
    accounts = find_accounts(env, projects)
    reason = explain_refusal(named, projects, env.get(b"HOME", b""))
    if is_usual(named, accounts):
        return reason, True
    record = find_record(named, accounts)
    if not reason and record is None:
        where = (accounts or [b""])[0].decode("utf-8", "replace") + "/.yester/homes"
        reason = "is not recorded in %s: use it once with a command in your own shell" % where
    elif not reason and record and read_file(named + b"/path") != record[0] + b"\n":
        reason = "is not the folder that was recorded: use it once with a command in your own shell"
    return reason, record is not None


def find_program(
    home: bytes, accounts: "list[bytes]", projects: "Folders"
) -> "tuple[list[bytes], bytes] | None":
    """The command line of this home's worker, and the account it was found in: what the user's own
    commands have recorded, else where packages are installed. Nothing of a named home counts, nor
    PATH, nor what lies in a project."""
    rest = [b"--home", home, b"worker", b"run"]
    for account in accounts:
        words = _recorded_words(home, account)
        if words and posix.access(words[0], posix.X_OK):
            return words + rest, account
    projects = _without(projects, *accounts)
    places = [(account + place, account) for account in accounts for place in _PROGRAMS]
    beside = sys.executable.rpartition("/")[0].encode("utf-8", "surrogateescape")
    for folder in (beside, b"/usr/local/bin", b"/usr/bin"):
        places.append((folder + b"/yester", _account_folder()))
    for program, account in places:
        if _is_safe(program, projects):
            return [program, *rest], account
    return None


def second_place(runtime: bytes, home: bytes) -> bytes:
    """Where the spool of this home is when its disk is full: no two homes share one."""
    from hashlib import blake2b
    from os.path import realpath

    return runtime + b"/yester/" + blake2b(realpath(home), digest_size=8).hexdigest().encode()


def _recorded_words(home: bytes, account: bytes) -> "list[bytes]":
    """How a command of the account has said that yester is started, up to the home."""
    if not is_usual(home, [account]) and (record := find_record(home, [account])):
        return [record[1], b"-P", b"-m", b"yester"]
    words = _read_own(account + b"/.yester/run/launch").split(b"\n")
    place = words.index(b"--home") if b"--home" in words[:-1] else 0
    # of another home, where it was copied from there
    return words[:place] if place and is_usual(words[place + 1], [account]) else []


def _is_safe(program: bytes, projects: "Folders") -> bool:
    """Can nobody but this user and root have put it there, through whatever links?"""
    folder = program.rpartition(b"/")[0] or b"/"
    try:
        regular = posix.stat(program).st_mode & 0o170000 == 0o100000  # links in a circle have none
        # Who may rename the folder may replace it.
        closed = _is_closed(program) and _is_closed(folder) and _is_closed(folder + b"/..")
        if not (regular and closed) or _lies_in(folder, projects):
            return False
    except OSError:
        return False
    try:
        target = posix.readlink(program)
    except OSError:  # it is no link
        return posix.access(program, posix.X_OK)
    return _is_safe(target if target[:1] == b"/" else folder + b"/" + target, projects)


def _is_closed(path: bytes) -> bool:
    """Writable by this user or root alone, or by a group that is nobody else's: the user's own,
    which has the user's number, or one that root has let in."""
    found = posix.stat(path)
    group = not found.st_mode & 0o020 or found.st_uid in (0, found.st_gid)
    return found.st_uid in (0, _user_number()) and group and not found.st_mode & 0o002


def _account_folder() -> bytes:
    try:
        import pwd

        return pwd.getpwuid(_user_number()).pw_dir.encode("utf-8", "surrogateescape")
    except (ImportError, KeyError):  # Windows has no such list
        return b""


def _without(folders: "Folders", *spared: bytes) -> "Folders":
    return folders - {found[1:3] for found in map(_look_at, spared) if found}


def _lies_in(path: bytes, folders: "Folders") -> bool:
    """Is it one of them, or below one, links followed?"""
    try:
        return any(above in folders for _, above in _upwards(path))
    except OSError:
        return True  # what cannot be looked at is not trusted


def _is_same(one: bytes, other: bytes) -> bool:
    found, known = _look_at(one), _look_at(other)
    return bool(found and known and found[1:3] == known[1:3])


def _is_users(path: bytes) -> bool:
    found = _look_at(path)
    return bool(found and found.st_uid == _user_number())


def _find_runtime(env: "Env", projects: "Folders") -> "bytes | None":
    """A second place for the spool, where it is ours."""
    named = env.get(b"XDG_RUNTIME_DIR", b"")
    own = named and _is_own(b"XDG_RUNTIME_DIR", named)
    return named if own and not explain_refusal(named, projects) else None


def _is_own(variable: bytes, path: bytes) -> bool:
    """Is this the user's own word? A repository can set variables for its hooks and an agent's
    shell, but not for the client that runs them: where that can be looked at (Linux), it has the
    same. And no path that leads from where we are, however absolute it looks."""
    if not path.startswith(b"/") or path.startswith((b"/proc/", b"/dev/fd/")) or b".." in path:
        return False
    pid = posix.getppid()
    try:
        for _ in range(_ANCESTORS):
            name, _, rest = read_file(b"/proc/%d/stat" % pid).partition(b"(")[2].rpartition(b")")
            if name in _CLIENTS:
                theirs = b"\0" + read_file(b"/proc/%d/environ" % pid)
                return b"\0%b=%b\0" % (variable, path) in theirs
            pid = int(rest.split()[1])
    except (IndexError, ValueError):
        pass  # there is no /proc, or no parent left
    return True


# --- the cases that are not usual ---------------------------------------------------------------


def rare(event: bytes, name: bytes, data: bytes, env: "Env", put: "Put") -> "bytes | None":
    """Store the event where that is allowed and possible; the home to ask, or None."""
    off = env.get(b"YESTER_OFF", b"0").lower() not in (b"", b"0", b"false")
    if off and event != b"SessionStart":
        return None
    projects = find_projects(env)
    home = _find_home(env, projects)
    if event != b"SessionStart" or b"CLAUDECODE" not in env or off:
        _notices.clear()
    if home is None:
        _print_answer(b"")
        return None
    head, _, payload = data.partition(b"\n")
    # run/rules, which yester has written from its settings
    rules = read_file(home + b"/run/rules").decode("utf-8", "surrogateescape").split("\n")
    if off:  # its transcript must stay out as well: name the session
        import json

        data = head + b"\toff=1\n" + json.dumps(_name_session(payload)).encode()
    elif _is_forbidden(rules, env, payload):
        return None
    for spool in _find_spools(home, env, projects):
        half = spool + b"/tmp/" + name
        _attempt(posix.unlink, half)  # half of the usual way may have been gone already
        try:
            put(spool, name, data, "nosync" not in rules)
            return None if off else home
        except OSError:
            _attempt(posix.unlink, half)
    _attempt(posix.utime, home + b"/run/gap")  # works on a full disk; `yester doctor` tells of it
    return None


def _find_spools(home: bytes, env: "Env", projects: "Folders") -> "Iterator[bytes]":
    """Its own, and the one for when that cannot be written to."""
    yield home + b"/spool"
    if runtime := _find_runtime(env, projects):
        place = second_place(runtime, home)
        _attempt(posix.mkdir, runtime + b"/yester", 0o700)
        _make_folders(place)
        yield place + b"/spool"


def _find_home(env: "Env", projects: "Folders") -> "bytes | None":
    """$YESTER_HOME where the rule allows it, else the account's own, made if yester is installed.

    A name that the user has never used is somebody else's word, and changes nothing. One that was
    used means that these events belong there and nowhere else: where it fails, nothing is kept.
    """
    named = env.get(b"YESTER_HOME", b"")
    reason, used = judge_home(named, env, projects) if named else ("", False)
    said = "YESTER_HOME=" + named.decode("utf-8", "replace")
    if used and reason:
        _notices.append("%s %s, so nothing is remembered for this session." % (said, reason))
        return None
    home = named
    if not used:
        accounts = find_accounts(env, projects)
        if not accounts:
            return None
        home = accounts[0] + b"/.yester"
        if not posix.access(home, posix.F_OK) and not find_program(home, accounts, projects):
            _notices.append(_NOT_INSTALLED)
            return None
        if named:
            kept = home.decode("utf-8", "replace")
            _notices.append("%s is not used: it %s." % (said, reason))
            _notices.append("This session is kept in %s." % kept)
    _make_folders(home)
    return home


def _make_folders(home: bytes) -> None:
    for part in (b"", b"/run", b"/spool", b"/spool/tmp", b"/spool/new"):
        _attempt(posix.mkdir, home + part, 0o700)  # it is there, or `put` will fail


def _name_session(payload: bytes) -> "dict[str, object]":
    """The payload without anything that was said."""
    import json

    try:
        told = json.loads(payload)
        return {key: told[key] for key in ("session_id", "sessionId", "cwd") if key in told}
    except (ValueError, TypeError, RecursionError):
        return {}


def _is_forbidden(rules: "list[str]", env: "Env", payload: bytes) -> bool:
    """Do the rules keep this folder or session out?"""
    here = posix.getcwd()
    session = _find_session(payload, env) if any(rule[:8] == "session " for rule in rules) else ""
    for rule in rules:
        kind, _, what = rule.partition(" ")
        if kind == "all" or (kind == "session" and what and what == session):
            return True
        if kind == "path" and covers(what, here):
            return True
    return False


def _find_session(payload: bytes, env: "Env") -> str:
    """The payload names the session; the variable may be that of an agent around this one."""
    named = _name_session(payload).get("session_id")
    if isinstance(named, str) and named:
        return named
    return env.get(b"CLAUDE_CODE_SESSION_ID", b"").decode("utf-8", "replace")


def covers(pattern: str, path: str) -> bool:
    """Does a path or glob stand for this folder, or for one above it?"""
    above = [path[:at] or "/" for at, sign in enumerate(path + "/") if sign == "/" and path]
    if pattern in above or not any(sign in pattern for sign in "*?["):
        return pattern in above
    from fnmatch import fnmatchcase

    return any(fnmatchcase(folder, pattern) for folder in above)


def _read_own(path: bytes) -> bytes:
    """A file where nobody else can have written it."""
    found = _look_at(path)
    own = found and found.st_uid == _user_number() and not found.st_mode & 0o077
    return read_file(path) if own else b""


def _look_at(path: bytes) -> "posix.stat_result | None":
    try:
        return posix.stat(path)
    except OSError:
        return None


def read_file(path: bytes) -> bytes:
    try:
        file = posix.open(path, posix.O_RDONLY | getattr(posix, "O_NONBLOCK", 0))
        try:
            return posix.read(file, 1 << 20)
        finally:
            posix.close(file)  # a command that asks for the rule may live long
    except OSError:
        return b""


def _attempt(act: "Callable[..., object]", *given: object) -> None:
    """Where that is not possible, it is not done."""
    try:
        act(*given)
    except OSError:
        pass
