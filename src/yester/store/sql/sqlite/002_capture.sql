-- What hooks have told. Nothing has ever written to the table of 001.
DROP TABLE event;
CREATE TABLE event (
  id      TEXT PRIMARY KEY,            -- the spool file's name: it begins with the time in ns
  session INTEGER NOT NULL,            -- 0: none
  turn    INTEGER NOT NULL DEFAULT 0,
  epoch   INTEGER NOT NULL,
  name    TEXT NOT NULL,
  actor   TEXT NOT NULL DEFAULT '',
  tool    TEXT NOT NULL DEFAULT '',
  failed  INTEGER NOT NULL DEFAULT 0,
  item    INTEGER NOT NULL DEFAULT 0,  -- what can be recalled of it
  skipped TEXT NOT NULL DEFAULT '',    -- why no observation is made of it
  window  INTEGER NOT NULL DEFAULT 0,  -- ms within which the same tool again is the same work
  lag     INTEGER NOT NULL DEFAULT 0   -- ms from the hook to the commit
) WITHOUT ROWID;
CREATE INDEX event_turn ON event(turn) WHERE turn <> 0;

-- A prompt, what was done about it, and how it ended: the unit that is distilled.
CREATE TABLE turn (
  id         INTEGER PRIMARY KEY,
  session    INTEGER NOT NULL,
  key        TEXT NOT NULL,            -- the client's id of the turn, or the first event's
  prompt     INTEGER NOT NULL DEFAULT 0,
  closing    INTEGER NOT NULL DEFAULT 0,
  started    INTEGER NOT NULL,
  ended      INTEGER NOT NULL DEFAULT 0,
  state      TEXT NOT NULL DEFAULT 'open',  -- open, done, interrupted, failed
  transcript TEXT NOT NULL DEFAULT '',
  distilled  INTEGER NOT NULL DEFAULT 0,
  UNIQUE (session, key)
);
CREATE INDEX turn_waiting ON turn(ended) WHERE distilled = 0;

-- Sessions their user has switched yester off for: their transcripts stay unread as well.
CREATE TABLE muted (session TEXT PRIMARY KEY, made INTEGER NOT NULL) WITHOUT ROWID;
