-- SessionStarts whose block is not known to have reached the agent: it comes with the session's next
-- answer. A row is made with the event and goes when a hook has said that it printed the block, or
-- there was nothing to say. Sessions from before this have none, and are owed nothing.
CREATE TABLE owed_start (
  session INTEGER PRIMARY KEY,
  event   TEXT NOT NULL,
  source  TEXT NOT NULL,               -- startup, resume, clear, compact, fork
  epoch   INTEGER NOT NULL
);
