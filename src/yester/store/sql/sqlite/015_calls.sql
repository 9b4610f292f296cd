-- A tool's use as structure, JSON: places in the body (see model.ToolCall). '' for everything else,
-- and for what was stored before: its transcripts, as far as they are still there, are read again
-- from their beginning by the next `yester index`. The same item is the same row then.
ALTER TABLE item ADD COLUMN call TEXT NOT NULL DEFAULT '';
UPDATE source SET size = -1, head = '0:' WHERE agent IN (
  'aider', 'claude-code', 'codex', 'copilot-cli', 'cursor', 'gemini-cli', 'opencode', 'specstory'
);
