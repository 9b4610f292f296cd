-- Types are compared without regard to case, which the former index could not answer.
DROP INDEX item_type;
CREATE INDEX item_type ON item(type COLLATE NOCASE, epoch) WHERE type <> '';
