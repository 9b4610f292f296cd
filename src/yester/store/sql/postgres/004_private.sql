-- A project with members is theirs alone; one without is the tenant's. Whose transaction it is says
-- `yester.account`; 0 is who opens the store by its address, and sees all of the tenant.
CREATE FUNCTION account() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE AS
$$ SELECT nullif(current_setting('yester.account', true), '')::bigint $$;
CREATE TABLE member (
  project bigint NOT NULL, account bigint NOT NULL, tenant int NOT NULL DEFAULT tenant(),
  PRIMARY KEY (tenant, project, account),
  FOREIGN KEY (tenant, project) REFERENCES project ON DELETE CASCADE
);
ALTER TABLE member ENABLE ROW LEVEL SECURITY;
ALTER TABLE member FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON member USING (tenant = (SELECT tenant()))
  WITH CHECK (tenant = (SELECT tenant()));
DO $$ BEGIN
  IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'yester_app') THEN
    GRANT SELECT, INSERT, UPDATE, DELETE ON member TO yester_app;
  END IF;
END $$;

-- Few, and asked once a statement: a planner that took them for 1,000 would rather read a whole table
-- than look up the rows of some ids one by one.
CREATE FUNCTION hidden_projects() RETURNS SETOF bigint
LANGUAGE sql STABLE PARALLEL SAFE COST 1 ROWS 1 AS $$
  SELECT project FROM member GROUP BY project HAVING bool_and(account <> account())
$$;
DO $$ DECLARE
  shown record;
  hidden constant text := '(SELECT hidden_projects())';
BEGIN
  FOR shown IN SELECT * FROM (VALUES
    ('project', 'id NOT IN ' || hidden),
    ('session', 'project NOT IN ' || hidden), ('item', 'project NOT IN ' || hidden),
    ('posting', 'project NOT IN ' || hidden), ('unfolded', 'project NOT IN ' || hidden),
    ('term', 'project NOT IN ' || hidden), ('length', 'project NOT IN ' || hidden)
  ) v(name, condition) UNION ALL
  SELECT name, 'EXISTS (SELECT 1 FROM item i WHERE i.id = ' || name || '.item)' FROM unnest(ARRAY[
    'item_file', 'item_concept', 'item_evidence', 'item_terms', 'line_edit', 'failure', 'memory',
    'memory_change', 'roam_item', 'vector', 'vector_code', 'unembedded', 'injection', 'feedback']) name UNION ALL
  SELECT name, 'session = 0 OR EXISTS (SELECT 1 FROM session s WHERE s.id = ' || name || '.session)'
    FROM unnest(ARRAY['turn', 'event', 'undistilled', 'refined', 'archived', 'owed_start']) name
  UNION ALL SELECT 'memory_gone', 'EXISTS (SELECT 1 FROM project p WHERE p.key = memory_gone.project)'
  UNION ALL SELECT 'project_join',
    'EXISTS (SELECT 1 FROM project p WHERE p.key IN (project_join.key, project_join.into_key))'
  UNION ALL SELECT 'project_join_row',
    'EXISTS (SELECT 1 FROM project_join j WHERE j.id = project_join_row.joined)'
  UNION ALL SELECT 'source',
    'EXISTS (SELECT 1 FROM project p WHERE p.key = source.state::json ->> ''project'')'
  LOOP
    EXECUTE format('CREATE POLICY of_members ON %I AS RESTRICTIVE USING ((SELECT account()) = 0 OR %s)'
                   ' WITH CHECK (true)', shown.name, shown.condition);
  END LOOP;
END $$;
