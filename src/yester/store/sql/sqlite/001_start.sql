CREATE TABLE migration (
  version INTEGER PRIMARY KEY,
  name    TEXT NOT NULL,
  applied INTEGER NOT NULL
);
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE project (
  id     INTEGER PRIMARY KEY,
  key    TEXT NOT NULL UNIQUE,
  name   TEXT NOT NULL UNIQUE,
  root   TEXT NOT NULL DEFAULT '',
  parent TEXT NOT NULL DEFAULT ''
);
CREATE TABLE session (
  id         INTEGER PRIMARY KEY,
  key        TEXT NOT NULL,
  agent      TEXT NOT NULL,
  project    INTEGER NOT NULL REFERENCES project(id),
  started    INTEGER NOT NULL,
  ended      INTEGER NOT NULL,
  cwd        TEXT NOT NULL DEFAULT '',
  branch     TEXT NOT NULL DEFAULT '',
  title      TEXT NOT NULL DEFAULT '',
  transcript TEXT NOT NULL DEFAULT '',
  UNIQUE (key, agent, project)
);
CREATE INDEX session_time ON session(ended);
CREATE INDEX session_project ON session(project, ended);

-- Everything recallable. Short columns first and the body last, so that reading what a list shows
-- does not walk the overflow pages of long texts.
CREATE TABLE item (
  id               INTEGER PRIMARY KEY,
  ref              TEXT NOT NULL,
  kind             TEXT NOT NULL,
  source           TEXT NOT NULL DEFAULT '',
  hash             BLOB NOT NULL,
  project          INTEGER NOT NULL REFERENCES project(id),
  session          INTEGER NOT NULL DEFAULT 0,      -- 0: none
  agent            TEXT NOT NULL DEFAULT '',
  actor            TEXT NOT NULL DEFAULT '',
  role             TEXT NOT NULL DEFAULT '',
  prompt_number    INTEGER NOT NULL DEFAULT 0,
  epoch            INTEGER NOT NULL,
  updated          INTEGER NOT NULL,
  type             TEXT NOT NULL DEFAULT '',
  tool             TEXT NOT NULL DEFAULT '',
  origin           TEXT NOT NULL DEFAULT 'agent',
  trust            REAL NOT NULL DEFAULT 0.5,
  confidence       REAL NOT NULL DEFAULT 1.0,
  status           TEXT NOT NULL DEFAULT 'active',
  supersedes       INTEGER NOT NULL DEFAULT 0,
  discovery_tokens INTEGER NOT NULL DEFAULT 0,
  title            TEXT NOT NULL DEFAULT '',
  subtitle         TEXT NOT NULL DEFAULT '',
  files_read       TEXT NOT NULL DEFAULT '[]',
  files_modified   TEXT NOT NULL DEFAULT '[]',
  concepts         TEXT NOT NULL DEFAULT '[]',
  tags             TEXT NOT NULL DEFAULT '[]',
  facts            TEXT NOT NULL DEFAULT '[]',
  sections         TEXT NOT NULL DEFAULT '{}',
  body             TEXT NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX item_identity ON item(ref, kind, source);
CREATE INDEX item_project_time ON item(project, epoch);
CREATE INDEX item_time ON item(epoch);
CREATE INDEX item_session_time ON item(session, epoch) WHERE session <> 0;
CREATE INDEX item_type ON item(type, epoch) WHERE type <> '';

-- Files and concepts by name. `name` is the last path component in lower case; a search compares
-- the rest of `path` from its end.
CREATE TABLE item_file (
  name TEXT NOT NULL, item INTEGER NOT NULL, path TEXT NOT NULL, modified INTEGER NOT NULL,
  PRIMARY KEY (name, item, path)
) WITHOUT ROWID;
CREATE TABLE item_concept (
  concept TEXT NOT NULL, item INTEGER NOT NULL, PRIMARY KEY (concept, item)
) WITHOUT ROWID;

-- The index: everything below can be rebuilt from `item` (yester reindex).
-- The full text supplies candidates and nothing more: which items hold a term. Scores come from the
-- term vectors, so each item's distinct terms suffice, without positions or columns; filter tokens
-- (p:12, k:prompt …) stand among them and cannot be mistaken for terms, which have no colon.
CREATE VIRTUAL TABLE item_text USING fts5 (
  terms, content='', contentless_delete=1, detail=none, tokenize="ascii tokenchars '_:.-'"
);
CREATE TABLE item_terms (item INTEGER PRIMARY KEY, vector BLOB NOT NULL);
CREATE TABLE term (hash INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE INDEX term_text ON term(text);
-- key = term hash * 2^24 + project id, so that one term's projects lie side by side
CREATE TABLE frequency (key INTEGER PRIMARY KEY, items INTEGER NOT NULL);
CREATE TABLE length (
  project INTEGER NOT NULL, kind TEXT NOT NULL, field INTEGER NOT NULL,
  items INTEGER NOT NULL, terms INTEGER NOT NULL,
  PRIMARY KEY (project, kind, field)
) WITHOUT ROWID;

CREATE TABLE vector (
  item INTEGER NOT NULL, field TEXT NOT NULL, ordinal INTEGER NOT NULL,
  model TEXT NOT NULL, value BLOB NOT NULL,
  PRIMARY KEY (item, field, ordinal, model)
) WITHOUT ROWID;

-- What was forgotten stays forgotten: an HMAC of (source, kind, ref) under a local key.
CREATE TABLE tombstone (mark BLOB PRIMARY KEY, made INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE event (
  id TEXT PRIMARY KEY, session INTEGER NOT NULL, epoch INTEGER NOT NULL,
  name TEXT NOT NULL, payload TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE injection (
  id INTEGER PRIMARY KEY, session INTEGER NOT NULL, prompt_number INTEGER NOT NULL,
  epoch INTEGER NOT NULL, event TEXT NOT NULL, item INTEGER NOT NULL,
  score REAL NOT NULL, tokens INTEGER NOT NULL, reason TEXT NOT NULL DEFAULT ''
);
CREATE INDEX injection_session ON injection(session, epoch);
CREATE TABLE feedback (
  id INTEGER PRIMARY KEY, item INTEGER NOT NULL, epoch INTEGER NOT NULL,
  what TEXT NOT NULL, session INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX feedback_item ON feedback(item);
CREATE TABLE spend (
  id INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, model TEXT NOT NULL, purpose TEXT NOT NULL,
  tokens_in INTEGER NOT NULL, tokens_out INTEGER NOT NULL, cost REAL NOT NULL
);

CREATE TABLE source (
  path     TEXT PRIMARY KEY,
  agent    TEXT NOT NULL,
  size     INTEGER NOT NULL,
  mtime_ns INTEGER NOT NULL,
  offset   INTEGER NOT NULL,
  line     INTEGER NOT NULL,
  head     TEXT NOT NULL,
  state    TEXT NOT NULL DEFAULT '{}'
) WITHOUT ROWID;
CREATE TABLE skipped (
  agent TEXT NOT NULL, reason TEXT NOT NULL, records INTEGER NOT NULL, PRIMARY KEY (agent, reason)
) WITHOUT ROWID;
