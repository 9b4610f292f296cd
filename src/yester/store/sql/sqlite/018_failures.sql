-- Runs that showed an error, and what came of it (see model.Failure). Made when a session is
-- distilled: what is there already is distilled once more.
CREATE TABLE failure (
  item    INTEGER NOT NULL,
  mark    TEXT NOT NULL,
  text    TEXT NOT NULL,
  command TEXT NOT NULL,
  epoch   INTEGER NOT NULL,
  came    TEXT NOT NULL,               -- fixed, instead, itself, meant, left, printed
  ended   INTEGER NOT NULL,
  run     INTEGER NOT NULL,
  changes TEXT NOT NULL,               -- JSON: ids of items
  tried   TEXT NOT NULL,
  PRIMARY KEY (item, mark)
) WITHOUT ROWID;
CREATE INDEX failure_mark ON failure(mark);
CREATE INDEX failure_command ON failure(command);
INSERT INTO undistilled SELECT id, 1, 0 FROM session WHERE true
  ON CONFLICT(session) DO UPDATE SET changes = changes + 1, since = 0;
