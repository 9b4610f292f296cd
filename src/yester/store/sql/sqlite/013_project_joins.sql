-- Projects that yester has joined with another by itself (a work tree that is gone, with its
-- repository), and what was theirs, so that it can be undone.
CREATE TABLE project_join (
  id       INTEGER PRIMARY KEY,
  key      TEXT NOT NULL,              -- as the project was called before
  name     TEXT NOT NULL,
  root     TEXT NOT NULL,
  parent   TEXT NOT NULL,
  into_key TEXT NOT NULL,
  items    INTEGER NOT NULL,
  sessions INTEGER NOT NULL,
  epoch    INTEGER NOT NULL,           -- ms
  undone   INTEGER NOT NULL DEFAULT 0  -- ms; 0: it is joined
);
-- What has an id: item, session, and the rows of a session that the other project had as well.
-- `before` is an item's session, a memory's name, a session's row where another took its place.
CREATE TABLE project_join_row (
  joined INTEGER NOT NULL REFERENCES project_join(id),
  what   TEXT NOT NULL,
  id     TEXT NOT NULL,
  before TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (joined, what, id)
) WITHOUT ROWID;
