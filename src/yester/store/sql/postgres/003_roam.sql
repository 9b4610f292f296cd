-- The log that one owner's machines write and read. A store on a server does not roam; what was
-- moved here may have come from other machines, and says so.
CREATE TABLE roam_machine (
  key text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL, seen bigint NOT NULL, own bigint NOT NULL,
  tenant int NOT NULL DEFAULT tenant(), PRIMARY KEY (tenant, key)
);
CREATE TABLE roam_segment (
  machine text COLLATE "C" NOT NULL, number bigint NOT NULL, mark text COLLATE "C" NOT NULL,
  tenant int NOT NULL DEFAULT tenant(), PRIMARY KEY (tenant, machine, number, mark)
);
CREATE TABLE roam_item (
  item bigint NOT NULL, origin text COLLATE "C" NOT NULL, place bigint NOT NULL, sent bigint NOT NULL,
  hash text COLLATE "C" NOT NULL, kind text COLLATE "C" NOT NULL, ref text COLLATE "C" NOT NULL,
  root text COLLATE "C" NOT NULL, version bigint NOT NULL, head text COLLATE "C" NOT NULL,
  tenant int NOT NULL DEFAULT tenant(), PRIMARY KEY (tenant, item)
);
CREATE INDEX roam_item_root ON roam_item(tenant, root) WHERE root <> '';
CREATE TABLE roam_version (
  root text COLLATE "C" NOT NULL, mark text COLLATE "C" NOT NULL, parents text COLLATE "C" NOT NULL,
  tenant int NOT NULL DEFAULT tenant(), PRIMARY KEY (tenant, root, mark)
);
DO $$ DECLARE t text; BEGIN
  FOREACH t IN ARRAY ARRAY['roam_machine', 'roam_segment', 'roam_item', 'roam_version'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
    EXECUTE format('CREATE POLICY of_tenant ON %I USING (tenant = (SELECT tenant()))'
                   ' WITH CHECK (tenant = (SELECT tenant()))', t);
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'yester_app') THEN
      EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO yester_app', t);
    END IF;
  END LOOP;
END $$;
