-- How long the worker took to answer hooks: how many answers took so many ms on a day (UTC).
CREATE TABLE answered (
  day     INTEGER NOT NULL,            -- since 1970
  ms      INTEGER NOT NULL,
  answers INTEGER NOT NULL,
  PRIMARY KEY (day, ms)
) WITHOUT ROWID;
