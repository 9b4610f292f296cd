-- What a distilled item was made of: fact number → the item the fact was taken from; fact -1 is for
-- what the rest of it (title, text, sections) was taken from.
CREATE TABLE item_evidence (
  item   INTEGER NOT NULL,
  fact   INTEGER NOT NULL,
  source INTEGER NOT NULL,
  PRIMARY KEY (item, fact, source)
) WITHOUT ROWID;
CREATE INDEX item_evidence_source ON item_evidence(source);

-- Sessions that have something new since they were last distilled. `since` is when the earliest of
-- it happened (ms); `changes` counts the writes: what comes while a session is being distilled must
-- not be taken for done.
CREATE TABLE undistilled (
  session INTEGER PRIMARY KEY, changes INTEGER NOT NULL, since INTEGER NOT NULL
);
INSERT INTO undistilled SELECT id, 1, 0 FROM session;
