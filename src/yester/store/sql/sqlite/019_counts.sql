-- Counted by `status` and `stats` without a look at every item.
CREATE INDEX item_counted ON item(kind, status) WHERE discovery_tokens > 0;
CREATE INDEX item_put_away ON item(kind) WHERE status <> 'active';
