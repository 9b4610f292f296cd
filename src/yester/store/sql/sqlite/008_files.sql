-- The file a memory was last read from, without its secrets: the pattern for writing it again.
ALTER TABLE memory ADD COLUMN file BLOB;
ALTER TABLE memory ADD COLUMN file_hash TEXT NOT NULL DEFAULT '';       -- its values as they stood
ALTER TABLE memory ADD COLUMN file_version INTEGER NOT NULL DEFAULT 0;  -- what it was read into
