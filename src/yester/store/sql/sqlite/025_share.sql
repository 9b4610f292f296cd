-- Items that a team has which shares a project (see yester.sharing.share), as it has them. A row
-- outlives its item: what was taken out or forgotten here is told then.
CREATE TABLE share_item (
  project   TEXT NOT NULL,             -- its key
  item      INTEGER NOT NULL,
  digest    TEXT NOT NULL,             -- of what it is called, under the key of its user there
  mark      TEXT NOT NULL,             -- the hash of its content, or the version of a memory
  kind      TEXT NOT NULL,
  ref       TEXT NOT NULL,             -- '' where it may hold words
  root      TEXT NOT NULL,             -- of a structured memory
  forgotten INTEGER NOT NULL,
  PRIMARY KEY (project, item)
) WITHOUT ROWID;
CREATE INDEX share_item_item ON share_item(item);
-- How far the team's lines were read. It stands beside the rows that were made of them, so that a
-- backup which is put back reads on from where it was made.
CREATE TABLE share_cursor (project TEXT PRIMARY KEY, place TEXT NOT NULL) WITHOUT ROWID;
