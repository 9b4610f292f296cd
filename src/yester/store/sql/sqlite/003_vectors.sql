-- Vectors of parts of items. Nothing has ever written to the table of 001.
DROP TABLE vector;
CREATE TABLE vector (
  id    INTEGER PRIMARY KEY,
  item  INTEGER NOT NULL,
  part  INTEGER NOT NULL,           -- number of the part within the item
  parts INTEGER NOT NULL,           -- how many it has
  model TEXT NOT NULL,              -- sha256 of what it was made with
  value BLOB NOT NULL
);
CREATE INDEX vector_item ON vector(item);
-- One bit a dimension, apart from the values: a search reads all of them.
CREATE TABLE vector_code (
  id INTEGER PRIMARY KEY, item INTEGER NOT NULL, model TEXT NOT NULL, code BLOB NOT NULL
);
-- Items whose vectors are still to be made, for the model named by meta 'embedder'.
CREATE TABLE unembedded (
  item INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, queued INTEGER NOT NULL  -- both ms
);
CREATE INDEX unembedded_time ON unembedded(epoch);
