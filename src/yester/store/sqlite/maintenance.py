"""Looking after the SQLite file: integrity, copies, and errors in words."""

from __future__ import annotations

import os
import shutil
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from errno import EMFILE
from io import BufferedReader
from pathlib import Path
from tempfile import NamedTemporaryFile

import apsw

from yester.errors import (
    NO_DATABASE,
    TOO_MANY_FILES,
    StoreBusy,
    StoreDamaged,
    StoreError,
    YesterError,
)
from yester.files import open_unpacked
from yester.store import sqlite_file
from yester.store.lock import write_lock

_PACKING = 1  # of 9: a third of the size; more takes far longer and gains little
_CHUNK = 1 << 20
_FILES = 8  # that a store in use has open, its locks and journals among them
_POLL = 0.05  # seconds
PATIENCE = 10.0  # seconds to wait for another writer's batch of a fraction of a second


def lock_file(home: Path) -> Path:
    return home / "run" / "write.lock"


def backup(db: apsw.Connection, path: Path) -> None:
    """Copied page by page under another name, then renamed: a backup that exists is whole. One
    that is called .gz is compressed, and was checked before and read back after it."""
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)
    os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    with closing(apsw.Connection(str(part))) as copy:
        _copy_pages(db, copy)
        copy.execute("PRAGMA journal_mode = DELETE")
    if path.suffix == ".gz":
        try:
            _pack_copy(part)
        except apsw.Error:
            part.unlink()
            raise
    part.rename(path)


def _pack_copy(part: Path) -> None:
    import gzip

    with closing(apsw.Connection(str(part))) as copy:
        if (problem := copy.execute("PRAGMA quick_check(1)").get) != "ok":
            raise apsw.CorruptError(str(problem))
    packed = part.with_suffix(".part-gz")
    packed.unlink(missing_ok=True)
    handle = os.open(packed, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(handle, "wb") as file:
        with open(part, "rb") as plain, gzip.GzipFile("", "wb", _PACKING, file) as writer:
            shutil.copyfileobj(plain, writer, _CHUNK)
        file.flush()
        os.fsync(file.fileno())
    with open(part, "rb") as plain, open_unpacked(packed) as again:
        while chunk := plain.read(_CHUNK):
            if again.read(len(chunk)) != chunk:
                raise apsw.IOError(f"{packed}: what was written is not what can be read")
    packed.replace(part)


def _copy_pages(source: apsw.Connection, target: apsw.Connection) -> None:
    with target.backup("main", source, "main") as work:
        while not work.done:
            work.step(2000)


_MAGIC = b"SQLite format 3\0"


def _is_database(path: Path) -> bool:
    """By its first bytes; an empty file is one that nothing has been written to yet."""
    with open(path, "rb") as file:
        return file.read(len(_MAGIC)) in (_MAGIC, b"")


def open_reader(path: Path) -> closing[apsw.Connection]:
    """The database with what its log holds; a compressed one is unpacked beside it meanwhile."""
    with open_unpacked(path) as plain:
        if isinstance(plain, BufferedReader):
            return closing(connect_reader(path))
        with NamedTemporaryFile(suffix=".part", dir=path.parent) as file:
            try:
                shutil.copyfileobj(plain, file, _CHUNK)
            except (EOFError, zlib.error) as error:
                raise apsw.CorruptError(str(error)) from error
            file.flush()
            return closing(connect_reader(Path(file.name)))


def connect_reader(path: Path) -> apsw.Connection:
    """One without a log may lie where nothing can be written, and SQLite would want to."""
    logged = any(Path(f"{path}{end}").exists() for end in ("-wal", "-journal"))
    name = f"{path.absolute().as_uri()}?mode={'rw' if logged else 'ro&immutable=1'}"
    return apsw.Connection(name, flags=apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_READWRITE)


def open_copy(path: Path, folder: Path) -> closing[apsw.Connection]:
    """A copy of the database's files: whoever opens a damaged one may change it."""
    for end in ("", "-wal"):
        if Path(f"{path}{end}").exists():
            shutil.copyfile(f"{path}{end}", folder / f"damaged.db{end}")
    return closing(apsw.Connection(str(folder / "damaged.db")))


def _overwrite_content(path: Path, source: Path) -> None:
    """All of `source` instead of what the database at `path` holds, as one transaction of SQLite's
    own. Readers go on with what they see, and the log needs no hand of ours: renaming a file and
    its log are two steps, and a kill between them would lose what the log holds."""
    with (
        closing(apsw.Connection(str(source))) as new,
        closing(apsw.Connection(str(path))) as live,
    ):
        live.set_busy_timeout(int(PATIENCE * 1000))
        number = max(restore_count(live), restore_count(new)) + 1
        new.execute("INSERT OR REPLACE INTO meta VALUES ('restores', ?)", (str(number),))
        _copy_pages(new, live)
        live.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()  # as far as readers allow


def copy_store(path: Path, folder: Path) -> Path:
    """The database at `path`, with what its log holds, as the store of another folder."""
    copy = sqlite_file(folder)
    with explain_errors(path), open_reader(path) as db:
        backup(db, copy)
    return copy


def replace_store(home: Path, copy: Path, aside: Path) -> Path | None:
    """The copy's content as the store's, in one transaction: a kill at any point leaves the whole
    former store or the whole new one. Before that the former one is kept at `aside`; None where
    there was none."""
    path = sqlite_file(home)
    with explain_errors(path), write_lock(lock_file(home), PATIENCE):
        former = _keep_aside(path, copy.parent, aside) if path.exists() else None
        try:
            if former is not None:
                _overwrite_content(path, copy)
                return former
        except (apsw.NotADBError, apsw.CorruptError):
            pass  # nothing that SQLite can write into
        for end in ("-wal", "-shm"):  # a log would be applied to the new file, whose it is not
            Path(f"{path}{end}").unlink(missing_ok=True)
        copy.replace(path)
        return former


def _keep_aside(path: Path, scratch: Path, aside: Path) -> Path:
    """A copy of the present store, with all that its log holds; appears only when it is whole."""
    try:
        if not _is_database(path):  # opened, SQLite would empty its log
            raise apsw.NotADBError(str(path))
        with open_reader(path) as db:
            backup(db, scratch / "former.db")
    except apsw.Error:  # damaged: its files as they are
        for end in ("", "-wal"):
            if Path(f"{path}{end}").exists():
                shutil.copyfile(f"{path}{end}", scratch / f"former.db{end}")
                (scratch / f"former.db{end}").chmod(0o600)
    for end in ("-wal", ""):
        if (scratch / f"former.db{end}").exists():
            (scratch / f"former.db{end}").rename(f"{aside}{end}")
    return aside


def restore_count(db: apsw.Connection) -> int:
    """How often another store's content has taken this one's place; whoever remembers something of
    the rows sees by it that they are others."""
    try:
        return int(db.execute("SELECT value FROM meta WHERE key = 'restores'").get or 0)
    except apsw.SQLError:
        return 0  # no table yet


@contextmanager
def explain_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (apsw.Error, OSError) as error:
        raise explain_error(error, path) from error


# What went wrong with the database, for the person who must act.
_SENTENCES: Sequence[tuple[tuple[type[Exception], ...], type[YesterError], str]] = (
    ((apsw.NotADBError,), StoreDamaged,
     f"{{path}} {NO_DATABASE}; `yester doctor` says what can be done"),
    ((apsw.CorruptError,), StoreDamaged,
     "{path} is damaged ({error}); `yester doctor` says what can be done"),
    ((apsw.FullError,), StoreError,
     "{path}: the disk is full; nothing stored was lost, free some space and retry"),
    ((apsw.BusyError,), StoreBusy, "{path} is locked by another program; close it and retry"),
    ((apsw.ReadOnlyError, apsw.CantOpenError, apsw.PermissionsError), StoreError,
     "{path} cannot be written; check that its folder is yours and writable"),
    ((apsw.IOError,), StoreError, "{path}: reading or writing failed ({error}); check the disk"),
)  # fmt: skip


def _may_open_more() -> bool:
    """As many files as a store has: SQLite cannot say that it was this."""
    opened: list[int] = []
    try:
        opened += (os.open(os.devnull, os.O_RDONLY) for _ in range(_FILES))
    except OSError as error:
        return error.errno != EMFILE
    finally:
        for handle in opened:
            os.close(handle)
    return True


def explain_error(error: apsw.Error | OSError, path: Path) -> YesterError:
    if isinstance(error, OSError | apsw.CantOpenError) and not _may_open_more():
        return StoreError(f"{path}: {TOO_MANY_FILES}")
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        return StoreError(f"{error.filename or path}: {reason}; check the folder and the disk")
    if isinstance(error, apsw.CorruptError) and any(n in str(error) for n in ("fts5", "item_text")):
        return StoreDamaged(
            f"{path}: the search index is damaged; run `yester reindex`, no item is affected; "
            "where that does not help: `yester doctor --fix`"
        )
    if isinstance(error, apsw.IOError) and shutil.disk_usage(path.parent).free < _CHUNK:
        error = apsw.FullError()  # SQLite says so of the database alone, not of what it has beside
    for kinds, raised, text in _SENTENCES:
        if isinstance(error, kinds):
            return raised(text.format(path=path, error=error))
    return StoreError(f"{path}: {error}")


def scrub_file(path: Path, home: Path) -> None:
    """Write the file anew without what was deleted: terms nobody has, segments of the full text,
    free pages, the log. Others may have it open; StoreBusy where one reads for too long."""
    with (
        explain_errors(path),
        write_lock(lock_file(home), PATIENCE),
        closing(apsw.Connection(str(path))) as db,
    ):
        db.set_busy_timeout(int(PATIENCE * 1000))
        db.execute("PRAGMA secure_delete = ON")
        with db:
            db.execute(
                "DELETE FROM term WHERE NOT EXISTS (SELECT 1 FROM frequency"
                " WHERE key BETWEEN hash << 24 AND (hash << 24) | 0xffffff)"
            )
            db.execute("INSERT INTO item_text(item_text) VALUES ('optimize')")
        db.execute("VACUUM")
        deadline = time.monotonic() + PATIENCE
        while db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0][0]:
            if time.monotonic() > deadline:
                raise StoreBusy(
                    f"{path}: another program reads it, so its log cannot be emptied; end that "
                    "program and ask again: what was begun is finished then"
                )
            time.sleep(_POLL)


def read_values(path: Path) -> Iterator[bytes]:
    """Every text and blob of every row, and the terms of the index: a value may lie on several
    pages, where no search in the bytes of the file finds it."""
    with explain_errors(path), open_reader(path) as db:
        tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0"
        questions = [f'SELECT * FROM "{table}"' for (table,) in list(db.execute(tables))]
        if db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'item_text'").fetchone():
            db.execute("CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab(main, item_text, row)")
            questions.append("SELECT term FROM vocabulary")
        for value in (value for sql in questions for row in db.execute(sql) for value in row):
            if isinstance(value, str | bytes):
                yield value.encode("utf-8", "replace") if isinstance(value, str) else value
