-- What a store shares with a team, as in SQLite (see yester.sharing.share).
CREATE TABLE share_item (
  project text COLLATE "C" NOT NULL, item bigint NOT NULL, digest text COLLATE "C" NOT NULL,
  mark text COLLATE "C" NOT NULL, kind text COLLATE "C" NOT NULL, ref text COLLATE "C" NOT NULL,
  root text COLLATE "C" NOT NULL, forgotten bigint NOT NULL, tenant int NOT NULL DEFAULT tenant(),
  PRIMARY KEY (tenant, project, item)
);
CREATE INDEX share_item_item ON share_item(tenant, item);
CREATE TABLE share_cursor (
  project text COLLATE "C" NOT NULL, place text COLLATE "C" NOT NULL,
  tenant int NOT NULL DEFAULT tenant(), PRIMARY KEY (tenant, project)
);
CREATE FUNCTION hex(bytea) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT upper(encode($1, 'hex')) COLLATE "C" $$;

-- What the members of a team share with each other, on their server: a line each, in the order of
-- commits, since whoever writes holds the tenant's lock. An item has one line, its newest; of a memory
-- each version stays, and so does that something was taken back or forgotten.
CREATE TABLE share_line (
  id bigint NOT NULL DEFAULT next_number('share_line'), project bigint NOT NULL,
  owner text COLLATE "C" NOT NULL,     -- whose it is
  who text COLLATE "C" NOT NULL,       -- who has told it
  digest text COLLATE "C" NOT NULL,    -- of what it is called, under the owner's key
  kind text COLLATE "C" NOT NULL, mark text COLLATE "C" NOT NULL, line bytea NOT NULL,
  anchor text COLLATE "C" NOT NULL,    -- of the batch it came with
  tenant int NOT NULL DEFAULT tenant(),
  PRIMARY KEY (tenant, id), FOREIGN KEY (tenant, project) REFERENCES project
);
CREATE INDEX share_line_project ON share_line(tenant, project, id);
CREATE INDEX share_line_digest ON share_line(tenant, digest);
-- Batches that were answered. A cursor names one: where that is unknown, the database is another one
-- than the cursor was given by, such as one restored from a backup.
CREATE TABLE share_batch (
  anchor text COLLATE "C" NOT NULL, account bigint NOT NULL, origin text COLLATE "C" NOT NULL,
  batch bigint NOT NULL, body text COLLATE "C" NOT NULL, answer text COLLATE "C" NOT NULL,
  tenant int NOT NULL DEFAULT tenant(),
  PRIMARY KEY (tenant, anchor), UNIQUE (tenant, account, origin, batch)
);
DO $$ DECLARE
  shown record;
BEGIN
  FOR shown IN SELECT * FROM (VALUES
    ('share_line', 'project NOT IN (SELECT hidden_projects())'),
    ('share_item', 'EXISTS (SELECT 1 FROM project p WHERE p.key = share_item.project)'),
    ('share_cursor', 'EXISTS (SELECT 1 FROM project p WHERE p.key = share_cursor.project)')
  ) v(name, condition)
  LOOP
    EXECUTE format('CREATE POLICY of_members ON %I AS RESTRICTIVE USING ((SELECT account()) = 0 OR %s)'
                   ' WITH CHECK (true)', shown.name, shown.condition);
  END LOOP;
  EXECUTE 'CREATE POLICY of_token ON share_line AS RESTRICTIVE'
          ' USING ((SELECT allowed_projects()) IS NULL OR project = ANY ((SELECT allowed_projects())::bigint[]))'
          ' WITH CHECK ((SELECT allowed_projects()) IS NULL OR project = ANY ((SELECT allowed_projects())::bigint[]))';
END $$;
SELECT protect_tables();
