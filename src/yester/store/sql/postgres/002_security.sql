-- Row-level security also holds for the owner of the tables. A superuser would still see everything,
-- so such a connection goes on as `yester_app`, which can do nothing but work with these tables.
DO $$ BEGIN
  IF (SELECT rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user)
     AND NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'yester_app') THEN
    CREATE ROLE yester_app NOLOGIN NOBYPASSRLS;
  END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$;
DO $$ DECLARE t text; BEGIN
  FOR t IN SELECT table_name FROM information_schema.columns
            WHERE table_schema = 'yester' AND column_name = 'tenant' LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
    EXECUTE format('CREATE POLICY of_tenant ON %I USING (tenant = (SELECT tenant()))'
                   ' WITH CHECK (tenant = (SELECT tenant()))', t);
  END LOOP;
  IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'yester_app') THEN
    GRANT USAGE ON SCHEMA yester TO yester_app;
    FOR t IN SELECT table_name FROM information_schema.columns
              WHERE table_schema = 'yester' AND column_name = 'tenant' LOOP
      EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO yester_app', t);
    END LOOP;
    GRANT USAGE, SELECT, UPDATE ON SEQUENCE vector_number TO yester_app;
    GRANT SELECT ON migration TO yester_app;
  END IF;
END $$;
