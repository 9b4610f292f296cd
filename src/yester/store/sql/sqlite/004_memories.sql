-- What a structured memory has besides its item. Deleting the item takes everything of it along.
CREATE TABLE memory (
  item    INTEGER PRIMARY KEY REFERENCES item(id) ON DELETE CASCADE,
  slug    TEXT NOT NULL,
  scope   TEXT NOT NULL,               -- global, project, path
  path    TEXT NOT NULL DEFAULT '',    -- the glob of scope path
  content TEXT NOT NULL,               -- JSON, by the fields of the category
  version INTEGER NOT NULL,            -- how often it has been written
  since   INTEGER NOT NULL,            -- when it got its status
  reason  TEXT NOT NULL DEFAULT ''     -- why it has it
);
CREATE INDEX memory_slug ON memory(slug);
CREATE INDEX item_memory ON item(status, updated) WHERE kind = 'memory';
CREATE INDEX item_memory_type ON item(status, type COLLATE NOCASE) WHERE kind = 'memory';
CREATE INDEX item_supersedes ON item(supersedes) WHERE supersedes <> 0;

-- The tags of active memories: the words in use.
CREATE TABLE memory_tag (
  tag TEXT NOT NULL, item INTEGER NOT NULL REFERENCES item(id) ON DELETE CASCADE,
  PRIMARY KEY (tag, item)
) WITHOUT ROWID;
CREATE INDEX memory_tag_item ON memory_tag(item);

-- Who changed what, when and why. Lines are added and never edited; they go with their memory.
CREATE TABLE memory_change (
  id     INTEGER PRIMARY KEY AUTOINCREMENT,
  act    INTEGER NOT NULL,             -- id of the first change that was made together with it
  item   INTEGER NOT NULL REFERENCES item(id) ON DELETE CASCADE,
  epoch  INTEGER NOT NULL,
  who    TEXT NOT NULL,
  what   TEXT NOT NULL,
  why    TEXT NOT NULL DEFAULT '',
  before TEXT NOT NULL,                -- JSON of what became different; null: there was nothing
  after  TEXT NOT NULL
);
CREATE INDEX memory_change_item ON memory_change(item);
CREATE INDEX memory_change_act ON memory_change(act);
CREATE TRIGGER memory_change_stays BEFORE UPDATE ON memory_change BEGIN
  SELECT raise(ABORT, 'the history of memories is never edited');
END;

-- Memories that were let go: their refs do not come back.
CREATE TABLE memory_gone (
  source TEXT NOT NULL, ref TEXT NOT NULL, slug TEXT NOT NULL, type TEXT NOT NULL,
  project TEXT NOT NULL, epoch INTEGER NOT NULL, why TEXT NOT NULL,
  PRIMARY KEY (source, ref)
) WITHOUT ROWID;
