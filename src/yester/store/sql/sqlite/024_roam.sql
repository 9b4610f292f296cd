-- The log that one owner's machines write and read (see yester.sharing). Which machines there are;
-- `own`: what this one is called, or was called before a backup was restored.
CREATE TABLE roam_machine (
  key  TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  seen INTEGER NOT NULL,               -- ms, by its own clock: when it last wrote
  own  INTEGER NOT NULL
) WITHOUT ROWID;
-- What of the log has been read, or written.
CREATE TABLE roam_segment (
  machine TEXT NOT NULL, number INTEGER NOT NULL, mark TEXT NOT NULL,
  PRIMARY KEY (machine, number, mark)
) WITHOUT ROWID;
-- Items that stand in the log, with the hash they have there. A row outlives its item: what was
-- taken out here is told then.
CREATE TABLE roam_item (
  item    INTEGER PRIMARY KEY,
  origin  TEXT NOT NULL,               -- the machine it is from
  place   INTEGER NOT NULL,            -- the number of that machine's segment
  sent    INTEGER NOT NULL,            -- 0: the present log does not have it yet
  hash    TEXT NOT NULL,
  kind    TEXT NOT NULL,
  ref     TEXT NOT NULL,               -- '' where it may hold words
  root    TEXT NOT NULL,               -- of a structured memory: a digest of what it is called
  version INTEGER NOT NULL,            -- of that memory here
  head    TEXT NOT NULL                -- the version in the log that it is
);
CREATE INDEX roam_item_root ON roam_item(root) WHERE root <> '';
-- Versions of structured memories and what each was made of: two of one are both kept.
CREATE TABLE roam_version (
  root TEXT NOT NULL, mark TEXT NOT NULL, parents TEXT NOT NULL, PRIMARY KEY (root, mark)
) WITHOUT ROWID;
