-- Turns a language model was asked about, so that it is asked once. `shape` is how far the turn had
-- come; `reason` says why what was found without it stays, '' where its notes took the place of that.
CREATE TABLE refined (
  session INTEGER NOT NULL,
  turn    TEXT NOT NULL,
  shape   TEXT NOT NULL,
  epoch   INTEGER NOT NULL,            -- ms; when it was asked
  model   TEXT NOT NULL,
  reason  TEXT NOT NULL,
  PRIMARY KEY (session, turn)
) WITHOUT ROWID;

-- Sessions of which something stands in an archive: up to when.
CREATE TABLE archived (
  session INTEGER PRIMARY KEY, ended INTEGER NOT NULL, epoch INTEGER NOT NULL
);
