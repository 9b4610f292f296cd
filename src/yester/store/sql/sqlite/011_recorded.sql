-- A session's beginning asks for the newest of what was recorded for its own sake: few among many
-- messages, and none at all before anything is distilled.
CREATE INDEX item_recorded ON item(project, epoch) WHERE kind NOT IN ('message', 'prompt');
