"""What is kept for its own sake: decisions, rules, runbooks … with a form, a life and a history.

    categories.py    the table of categories, and contents by their fields: drafted, checked, put
                     into words, merged
    memory.py        a memory in its plain form, its tags, and the form an editor gets
    lifecycle.py     the only place that writes memories, and what is due to go
    remember.py      something new: is it known, what is it like
    review.py        what deserves a look
    files.py sync.py    `.claude/memory`: files in a folder; folder and store brought into step
    memory_md.py     MEMORY.md and CLAUDE.md: read, looked over, added to; where they are
    utterances.py    what of a prompt the user wrote, and what of it is said for good: rules,
                     decisions, what takes them back (tables/utterances.toml)
    typed.py rules.py    typed rules kept, proposed and ended; which rules apply
    frames.py        do two rules answer the same question differently
    chains.py        does a newer text take back an older one, and the chains that come of it

What a face calls, all with a store first and an `Author` who does it:

    show       lifecycle.find_memory, get_memory; chains.list_memory_chain
    list       store.memos(Filters, Paging)          history   read_history(store, id)
    remember   remember.remember(Draft), remember_instead; find_candidate writes nothing
    edit       lifecycle.edit_memory(id, changes, base=form_at_version(…))
    retire, archive, restore    lifecycle.change_status
    supersede  lifecycle.supersede_memory            undo      lifecycle.undo_change
    review     review.review_memories
    gc         lifecycle.parse_retention, find_due, collect_due
    sync       sync.sync_folder, import_folder       (files.locate_folder, find_memory_folder)
"""
