-- A call of a language model is written down before it is made, at the most it can cost, and
-- corrected when it has ended.
ALTER TABLE spend ADD COLUMN until INTEGER NOT NULL DEFAULT 0;  -- ms; it does not last longer
ALTER TABLE spend ADD COLUMN outcome TEXT NOT NULL DEFAULT '';  -- how it ended; '': under way
CREATE INDEX spend_time ON spend(epoch);
