-- The lines that edits have written, for each place that one has changed: 8 bytes a line, a keyed
-- hash of its words. The key is this store's own (meta, `line_key`): what another store has of the
-- same text cannot be compared. What was stored before waits from `lines_below` downwards.
CREATE TABLE line_edit (
  item    INTEGER NOT NULL REFERENCES item(id) ON DELETE CASCADE,
  path    TEXT NOT NULL,
  lines   BLOB NOT NULL,                -- as they stand there after it
  added   BLOB NOT NULL,                -- a byte a line, 1: it was put there; empty: all were
  removed BLOB NOT NULL,
  blind   INTEGER NOT NULL              -- 1: what was there before is not known; 2: and it is all
);
CREATE INDEX line_edit_item ON line_edit(item);
INSERT INTO meta SELECT 'line_key', lower(hex(randomblob(32)));
INSERT INTO meta SELECT 'lines_below', max(id) + 1 FROM item HAVING max(id) IS NOT NULL;
