-- What a search ranks of an item stands beside its terms: hundreds are looked up in one table, and
-- whether an account may see one is asked of its own row, as of a code of its vector.
ALTER TABLE item_terms
  ADD COLUMN kind text COLLATE "C", ADD COLUMN role text COLLATE "C", ADD COLUMN type text COLLATE "C",
  ADD COLUMN project bigint, ADD COLUMN session bigint, ADD COLUMN epoch bigint,
  ADD COLUMN updated bigint, ADD COLUMN hash bytea, ADD COLUMN prompt_number bigint;
CREATE FUNCTION copy_ranked() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  SELECT i.kind, i.role, i.type, i.project, i.session, i.epoch, i.updated, i.hash, i.prompt_number
    INTO NEW.kind, NEW.role, NEW.type, NEW.project, NEW.session, NEW.epoch, NEW.updated, NEW.hash,
         NEW.prompt_number
    FROM item i WHERE i.id = NEW.item;
  RETURN NEW;
END $$;
CREATE FUNCTION follow_ranked() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE item_terms SET item = item WHERE item = NEW.id;
  RETURN NULL;
END $$;
-- Rows of every tenant, which the owner of the tables may see for as long as this takes.
ALTER TABLE item NO FORCE ROW LEVEL SECURITY;
ALTER TABLE item_terms NO FORCE ROW LEVEL SECURITY;
UPDATE item_terms t
   SET kind = i.kind, role = i.role, type = i.type, project = i.project, session = i.session,
       epoch = i.epoch, updated = i.updated, hash = i.hash, prompt_number = i.prompt_number
  FROM item i WHERE i.tenant = t.tenant AND i.id = t.item;
ALTER TABLE item FORCE ROW LEVEL SECURITY;
ALTER TABLE item_terms FORCE ROW LEVEL SECURITY;
ALTER TABLE item_terms
  ALTER COLUMN kind SET NOT NULL, ALTER COLUMN role SET NOT NULL, ALTER COLUMN type SET NOT NULL,
  ALTER COLUMN project SET NOT NULL, ALTER COLUMN session SET NOT NULL,
  ALTER COLUMN epoch SET NOT NULL, ALTER COLUMN updated SET NOT NULL,
  ALTER COLUMN hash SET NOT NULL, ALTER COLUMN prompt_number SET NOT NULL;
CREATE TRIGGER item_terms_ranked BEFORE INSERT OR UPDATE ON item_terms
  FOR EACH ROW EXECUTE FUNCTION copy_ranked();
CREATE TRIGGER item_ranked AFTER UPDATE ON item FOR EACH ROW WHEN (
  (OLD.kind, OLD.role, OLD.type, OLD.project, OLD.session, OLD.epoch, OLD.updated, OLD.hash, OLD.prompt_number)
  IS DISTINCT FROM
  (NEW.kind, NEW.role, NEW.type, NEW.project, NEW.session, NEW.epoch, NEW.updated, NEW.hash, NEW.prompt_number))
  EXECUTE FUNCTION follow_ranked();
DROP POLICY of_members ON item_terms;
CREATE POLICY of_members ON item_terms AS RESTRICTIVE USING (true) WITH CHECK (true);
CREATE POLICY of_token ON item_terms AS RESTRICTIVE USING (true) WITH CHECK (true);

-- A wall of fewer parts: which projects are hidden, and which are allowed, is asked once a statement
-- each, and of who opens the store by its address nothing is looked up.
CREATE FUNCTION list_hidden_projects() RETURNS bigint[] LANGUAGE sql STABLE PARALLEL SAFE AS
$$ SELECT ARRAY(SELECT hidden_projects()) $$;
DO $$ DECLARE t text; place text; BEGIN
  FOREACH t IN ARRAY ARRAY['project', 'session', 'item', 'item_terms', 'posting', 'unfolded', 'term',
                           'length', 'vector_code', 'share_line'] LOOP
    place := CASE t WHEN 'project' THEN 'id' ELSE 'project' END;
    EXECUTE format('ALTER POLICY of_members ON %I USING (%I <> ALL ((SELECT CASE WHEN account() = 0'
                   ' THEN ''{}'' ELSE list_hidden_projects() END)::bigint[]))', t, place);
    EXECUTE format('ALTER POLICY of_token ON %I USING'
                   ' (coalesce(%I = ANY ((SELECT allowed_projects())::bigint[]), true))', t, place);
  END LOOP;
END $$;

-- A list of ids, taken into the statement it stands in. Taken apart as a list and not as JSON: what is
-- converted from text member by member may not look up rows that row-level security guards.
CREATE OR REPLACE FUNCTION json_each(ids text, OUT key bigint, OUT value bigint) RETURNS SETOF record
LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 20 AS
$$ SELECT n - 1, v FROM unnest(translate(ids, '[]', '{}')::bigint[]) WITH ORDINALITY e(v, n) $$;

-- The items that hold all of these terms. The first are the fewest: of the list of each further one
-- those parts are taken apart that may hold any of what is left, as long as that is little.
CREATE FUNCTION holding_all(_terms int[]) RETURNS SETOF int LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
DECLARE
  _term int;
  _left int[] := ARRAY(SELECT holding(_terms[1], NULL));
BEGIN
  FOREACH _term IN ARRAY _terms[2:] LOOP
    EXIT WHEN cardinality(_left) = 0;
    _left := ARRAY(
      SELECT x.id FROM (
        SELECT unnest(p.ids) AS id FROM posting p
         WHERE p.term = _term AND (cardinality(_left) > 256 OR EXISTS (
           SELECT FROM unnest(_left) l(id) WHERE l.id BETWEEN p.ids[1] AND p.ids[cardinality(p.ids)]))) x
       WHERE x.id IN (SELECT unnest(_left)) AND x.id NOT IN (SELECT u.item FROM unfolded u WHERE u.sign < 0)
      UNION ALL
      SELECT u.item FROM unfolded u WHERE u.sign > 0 AND _term = ANY (u.terms) AND u.item = ANY (_left));
  END LOOP;
  RETURN QUERY SELECT unnest(_left);
END $$;
