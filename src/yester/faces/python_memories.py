"""Structured memories for Python: `yester.open().memories`. Every change goes into the history."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from yester.memories import lifecycle
from yester.memories.categories import get_category
from yester.memories.content import clean_text
from yester.memories.folder import locate_folder
from yester.memories.lifecycle import Due, RetentionRule, collect_due, find_due
from yester.memories.memory import GLOBAL, Author, plain_form
from yester.memories.remember import Choice, Draft, Kept, find_candidate, remember
from yester.memories.sync import ImportReport, SyncReport, import_folder, sync_folder
from yester.model import STATUSES, Change, Filters, Memo, Paging, Project
from yester.project import named_project
from yester.store.contract import Store

# The class has a method called list.
_Memos = list[Memo]
_Changes = list[Change]
_Dues = list[Due]
_NOBODY = Author("python", 0)


class Memories:
    """A memory is named by its id or its slug; `by` says who changes it (default: the user)."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def list(
        self,
        project: str | None = None,
        *,
        types: Sequence[str] = (),
        status: str = "active",
        tags: Sequence[str] = (),
        limit: int = -1,
    ) -> _Memos:
        """Memories, the last changed first; `status` may be "all"."""
        filters = Filters(projects=(project,) if project else (), types=tuple(types))
        statuses = STATUSES if status == "all" else (status,)
        return self._store.memos(filters, Paging(limit, statuses=statuses), tags=tags)

    def get(self, name: int | str) -> Memo:
        return lifecycle.find_memory(self._store, str(name))

    def keep(
        self,
        draft: Draft,
        project: str | None = None,
        by: Author = _NOBODY,
        *,
        update: int = 0,
        supersedes: int = 0,
    ) -> Kept:
        """What `remember` does, with everything that came of it. Without a project it holds
        everywhere."""
        where = GLOBAL if draft.scope == "global" or not project else self._project(project)
        if where is GLOBAL and not (draft.scope or draft.path):
            draft = replace(draft, scope="global")
        return remember(self._store, draft, where, _now(by), update=update, supersedes=supersedes)

    def candidate(
        self,
        text: str,
        type: str,  # noqa: A002 -- the word of the data model
        project: str | None = None,
        tags: Sequence[str] = (),
    ) -> Choice:
        """What would become of a text; nothing is written."""
        where = self._project(project) if project else GLOBAL
        return find_candidate(self._store, get_category(type), clean_text(text), where.key, tags)

    def edit(self, name: int | str, changes: Mapping[str, Any], by: Author = _NOBODY) -> Memo:
        """Change title, tags, files, confidence, scope, path, type or fields of the content."""
        memo = self.get(name)

        def changed(have: dict[str, Any]) -> dict[str, Any]:
            new = dict(changes)
            if "content" in new and new.get("type", have["type"]) == have["type"]:
                new["content"] = {**have["content"], **new["content"]}
            return new

        return lifecycle.edit_memory(self._store, memo.item.id, changed, _now(by))

    def retire(self, name: int | str, by: Author = _NOBODY, *, force: bool = False) -> Memo:
        return self._change_status(name, "retire", by, force)

    def archive(self, name: int | str, by: Author = _NOBODY) -> Memo:
        return self._change_status(name, "archive", by)

    def restore(self, name: int | str, by: Author = _NOBODY) -> Memo:
        return self._change_status(name, "restore", by)

    def supersede(self, old: int | str, new: int | str, by: Author = _NOBODY) -> Memo:
        """Let `new` stand in the place of `old`; what is new."""
        ids = self.get(old).item.id, self.get(new).item.id
        return lifecycle.supersede_memory(self._store, *ids, _now(by))[1]

    def undo(self, name: int | str = 0, by: Author = _NOBODY) -> _Memos:
        """Take back the last change, of this memory or at all."""
        return lifecycle.undo_change(self._store, _now(by), self.get(name).item.id if name else 0)

    def history(self, name: int | str = 0, limit: int = -1) -> _Changes:
        return self._store.changes(self.get(name).item.id if name else 0, limit=limit)

    def gc(self, rules: Mapping[str, RetentionRule], *, dry_run: bool = True) -> _Dues:
        """What is due by these rules (`yester.memories.lifecycle.parse_retention`) and by grace."""
        now = _now(_NOBODY).now
        return (
            list(find_due(self._store, rules, now))
            if dry_run
            else collect_due(self._store, rules, now)
        )

    def sync(
        self,
        folder: str | Path,
        project: str,
        *,
        emptied: bool = False,
        dry_run: bool = False,
    ) -> SyncReport:
        """Bring the files in a `.claude/memory` folder and a project's memories into step."""
        by = Author("sync", _now(_NOBODY).now, "file", f"from {folder}")
        root, _ = locate_folder(Path(folder))
        where = self._project(project)
        return sync_folder(self._store, root, where, by, emptied=emptied, dry_run=dry_run)

    def take(self, folder: str | Path, project: str) -> ImportReport:
        """Import the memories in a `.claude/memory` folder; nothing is written there."""
        root, _ = locate_folder(Path(folder))
        by = Author("import", _now(_NOBODY).now, "import", f"from {folder}")
        return import_folder(self._store, root, self._project(project), by)

    def _change_status(self, name: int | str, what: str, by: Author, force: bool = False) -> Memo:
        id_ = self.get(name).item.id
        return lifecycle.change_status(self._store, id_, what, _now(by), force=force)

    @staticmethod
    def plain(memo: Memo) -> dict[str, Any]:
        """A memory as plain values."""
        return plain_form(memo)

    def _project(self, name: str) -> Project:
        for project in self._store.projects():
            if name in (project.name, project.key):
                return project
        return named_project(name)


def _now(by: Author) -> Author:
    return by if by.now else Author(by.who, int(time.time() * 1000), by.origin, by.why)
