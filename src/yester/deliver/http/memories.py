"""What was remembered for its own sake.

Listing, showing and saving as far as plain items of kind memory go; changing, retiring, restoring
and forgetting one belong here as well.
"""

from __future__ import annotations

from hashlib import blake2b

from yester.capture.rules import rules
from yester.deliver.http import items, shapes
from yester.deliver.http.access import Access, span
from yester.deliver.http.parameters import ItemAt, MemoriesOf, Save
from yester.deliver.http.problem import Refusal
from yester.deliver.http.rows import Rows
from yester.deliver.library import Memory
from yester.errors import NotFound
from yester.model import Filters, Project
from yester.project import named
from yester.redact import redact

KIND = "memory"
EVERYWHERE = Project("yester:global", "global")  # what is true everywhere belongs to no other


def listed(access: Access, given: MemoriesOf) -> shapes.Items:
    since, until = span(given, access.now)
    projects = (access.project(given.project).key,) if given.project else ()
    filters = Filters(projects, (KIND,), tuple(given.types), since=since, until=until)
    found = access.store.newest(filters, given.limit + 1, given.offset)
    rows = Rows(access.store, full=given.format == "full").of(found[: given.limit])
    return shapes.Items(
        count=len(rows), format=given.format, results=rows, more=len(found) > given.limit
    )


def one(access: Access, given: ItemAt) -> shapes.Item:
    found = items.one(access, given)
    if found.item.kind != KIND:
        raise NotFound(f"item #{given.id} is no memory but a {found.item.kind}")
    return found


def save(access: Access, given: Save) -> shapes.Saved:
    """A program has sent it: it is no word of the user, and never becomes a rule."""
    text, title = given.text.strip(), given.title.strip()
    if not text:
        raise Refusal(
            400, "text is blank", parameter="text", fix="say in a sentence or two what to keep"
        )
    store = access.store
    project = _place(access, given.project.strip())
    allowed = rules(access.config)
    if allowed.excludes(project.root, project) or allowed.off(project.root, "", access.now):
        raise Refusal(
            403, f"nothing is kept of {project.name}: the user has said so (`exclude`, or "
            "`yester off`)", parameter="project", value=project.name, fix="name another project",
        )  # fmt: skip
    with store.transaction():
        store.put_project(project)  # a name alone would make another project of it
    name = next(one.name for one in store.projects() if one.key == project.key)
    ref = "http:" + blake2b(f"{project.key}\n{title}\n{text}".encode(), digest_size=12).hexdigest()
    told = {"ref": ref, "kind": KIND, "project": name, "title": title, "text": text}
    new = bool(Memory(store, access.config).add([told], embed="later"))
    saved = next(one for one in store.find(ref) if one.kind == KIND)
    hidden = " Secrets in it were left out." if redact(text) != text else ""
    return shapes.Saved(
        success=True, id=saved.id, title=redact(saved.title), project=name, new=new,
        message=(f"Saved as #{saved.id}.{hidden}" if new else f"Known already: #{saved.id}."),
    )  # fmt: skip


def _place(access: Access, name: str) -> Project:
    """A project that is known, or a new one of this name; without a name it is true everywhere."""
    if not name:
        return EVERYWHERE
    for project in access.store.projects():
        if name in (project.name, project.key):
            return project
    return named(name)
