-- Who may ask a server: accounts of a tenant, their tokens, and what was done with them. The server's
-- own role reads these rows of its tenant and adds to the log; it makes and changes none of them.
CREATE TABLE account (
  id bigint NOT NULL DEFAULT next_number('account'), name text COLLATE "C" NOT NULL,
  role text COLLATE "C" NOT NULL CHECK (role IN ('owner', 'member', 'reader')),
  made bigint NOT NULL, ended bigint NOT NULL DEFAULT 0, tenant int NOT NULL DEFAULT tenant(),
  PRIMARY KEY (tenant, id), UNIQUE (tenant, name)
);
CREATE TABLE token (
  id bigint NOT NULL DEFAULT next_number('token'), account bigint NOT NULL,
  name text COLLATE "C" NOT NULL, scopes text[] NOT NULL, projects bigint[],
  made bigint NOT NULL, expires bigint NOT NULL, revoked bigint NOT NULL DEFAULT 0,
  tenant int NOT NULL DEFAULT tenant(), PRIMARY KEY (tenant, id),
  FOREIGN KEY (tenant, account) REFERENCES account
);
-- A token is looked up before its tenant is known. Nobody but `authenticate` reads this: there is no
-- right to it for anybody, and no column by which a policy could let a tenant in.
CREATE TABLE token_hash (
  hash bytea PRIMARY KEY, of_tenant int NOT NULL, token bigint NOT NULL
);
-- How much a token has asked lately, for all processes of a server; losing it in a crash harms nobody.
CREATE UNLOGGED TABLE token_use (
  token bigint NOT NULL, level float8 NOT NULL, at float8 NOT NULL,
  tenant int NOT NULL DEFAULT tenant(), PRIMARY KEY (tenant, token)
) WITH (fillfactor = 50);
-- Only ever added to. Its ids are random: numbers of a sequence would say how much others do.
CREATE TABLE audit (
  id uuid NOT NULL DEFAULT gen_random_uuid(),
  epoch bigint NOT NULL DEFAULT (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
  account bigint NOT NULL, token bigint NOT NULL, action text COLLATE "C" NOT NULL,
  about text COLLATE "C" NOT NULL, outcome text COLLATE "C" NOT NULL,
  tenant int NOT NULL DEFAULT tenant(), PRIMARY KEY (tenant, epoch, id)
);
CREATE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE 'the audit log is only added to'; END $$;
CREATE TRIGGER audit_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();

-- Whose token has this hash, and whether it may ask now: `wait` is in seconds, and there where it has
-- asked more than `_rate` a second with `_burst` at once. From here on the transaction is its tenant's.
CREATE FUNCTION authenticate(_hash bytea, _rate float8, _burst float8, OUT tenant_id int,
  OUT tenant_name text, OUT account_id bigint, OUT account_name text, OUT account_role text,
  OUT token_id bigint, OUT scopes text[], OUT projects bigint[], OUT expires bigint, OUT state text,
  OUT wait float8)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = yester, pg_catalog AS $$
DECLARE
  now constant float8 := extract(epoch FROM clock_timestamp());
  reached float8;
BEGIN
  SELECT h.of_tenant, h.token INTO tenant_id, token_id FROM token_hash h WHERE h.hash = _hash;
  IF NOT FOUND THEN RETURN; END IF;
  PERFORM set_config('yester.tenant', tenant_id::text, true);
  SELECT n.name, a.id, a.name, a.role, t.scopes, t.projects, t.expires,
         CASE WHEN t.revoked <> 0 OR a.ended <> 0 THEN 'revoked'
              WHEN t.expires <> 0 AND t.expires <= now * 1000 THEN 'expired' ELSE 'good' END
    INTO tenant_name, account_id, account_name, account_role, scopes, projects, expires, state
    FROM token t JOIN account a ON a.tenant = t.tenant AND a.id = t.account JOIN tenant n ON n.id = t.tenant
   WHERE t.tenant = tenant_id AND t.id = token_id;
  INSERT INTO token_use AS u (tenant, token, level, at) VALUES (tenant_id, token_id, 1, now)
    ON CONFLICT ON CONSTRAINT token_use_pkey DO UPDATE
    SET level = greatest(0, u.level - greatest(0, now - u.at) * _rate) + 1, at = now
    WHERE greatest(0, u.level - greatest(0, now - u.at) * _rate) + 1 <= _burst
    RETURNING level INTO reached;
  IF reached IS NULL THEN
    SELECT greatest(0.001, (u.level - greatest(0, now - u.at) * _rate + 1 - _burst) / _rate) INTO wait
      FROM token_use u WHERE u.tenant = tenant_id AND u.token = token_id;
  END IF;
END $$;

-- A token may be good for some projects alone: the transaction says which, '' where it is for all.
CREATE FUNCTION allowed_projects() RETURNS bigint[] LANGUAGE sql STABLE PARALLEL SAFE AS
$$ SELECT nullif(current_setting('yester.projects', true), '')::bigint[] $$;
DO $$ DECLARE t text; allowed text; BEGIN
  FOREACH t IN ARRAY ARRAY['project', 'session', 'item', 'posting', 'unfolded', 'term', 'length'] LOOP
    allowed := format('(SELECT allowed_projects()) IS NULL OR %I = ANY ((SELECT allowed_projects())::bigint[])',
      CASE t WHEN 'project' THEN 'id' ELSE 'project' END);
    EXECUTE format('CREATE POLICY of_token ON %I AS RESTRICTIVE USING (%s) WITH CHECK (%s)', t, allowed, allowed);
  END LOOP;
END $$;
-- The last id that an item of the tenant has, whoever may see that item: the next is none that is taken.
CREATE FUNCTION newest_item() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  asking constant text := current_setting('yester.account', true);
  allowed constant text := current_setting('yester.projects', true);
  newest bigint;
BEGIN
  PERFORM set_config('yester.account', '0', true), set_config('yester.projects', '', true);
  SELECT coalesce(max(id), 0) INTO newest FROM item;
  PERFORM set_config('yester.account', asking, true), set_config('yester.projects', allowed, true);
  RETURN newest;
END $$;
-- A name that a private project has is free for others: who is refused it would know of that project.
ALTER TABLE project DROP CONSTRAINT project_tenant_name_key;
CREATE INDEX project_name ON project(tenant, name);

-- Every table with a tenant gets its wall, and the server's role its rights. The owner calls it when
-- tables or that role were made; calling it again changes nothing.
CREATE FUNCTION protect_tables() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  t text;
  application constant boolean := EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'yester_app');
BEGIN
  FOR t IN SELECT table_name FROM information_schema.columns
            WHERE table_schema = 'yester' AND column_name = 'tenant' LOOP
    EXECUTE format('ALTER TABLE yester.%I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE yester.%I FORCE ROW LEVEL SECURITY', t);
    IF NOT EXISTS (SELECT 1 FROM pg_policies
                    WHERE schemaname = 'yester' AND tablename = t AND policyname = 'of_tenant') THEN
      EXECUTE format('CREATE POLICY of_tenant ON yester.%I USING (tenant = (SELECT yester.tenant()))'
                     ' WITH CHECK (tenant = (SELECT yester.tenant()))', t);
    END IF;
    IF application THEN
      EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON yester.%I TO yester_app', t);
    END IF;
  END LOOP;
  IF application THEN
    GRANT USAGE ON SCHEMA yester TO yester_app;
    GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA yester TO yester_app;
    GRANT SELECT ON yester.migration TO yester_app;
    REVOKE INSERT, UPDATE, DELETE ON yester.account, yester.token, yester.token_use FROM yester_app;
    REVOKE UPDATE, DELETE ON yester.audit FROM yester_app;
  END IF;
END $$;
SELECT protect_tables();
