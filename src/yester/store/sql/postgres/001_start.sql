-- Everything of yester's stands in a schema of its own. Every row has a tenant, every key begins with
-- it, and row-level security gives each transaction the rows of its tenant alone: `yester.tenant` is
-- set in the transaction, never for a connection; where it is not set nothing is seen. Texts are
-- compared byte by byte, whatever the database's own order is.
CREATE FUNCTION tenant() RETURNS int LANGUAGE sql STABLE PARALLEL SAFE AS
$$ SELECT nullif(current_setting('yester.tenant', true), '')::int $$;

-- --- what SQLite's statements take for granted ------------------------------------------------------

CREATE FUNCTION iif(boolean, anycompatible, anycompatible) RETURNS anycompatible
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT CASE WHEN $1 THEN $2 ELSE $3 END $$;
CREATE FUNCTION min(bigint, bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT least($1, $2) $$;
CREATE FUNCTION max(bigint, bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT greatest($1, $2) $$;
CREATE FUNCTION instr(text, text) RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT strpos($1, $2) $$;
CREATE FUNCTION printf(text, bigint) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT $2::text COLLATE "C" $$;
CREATE FUNCTION unixepoch(text) RETURNS float8 LANGUAGE sql STABLE PARALLEL SAFE AS
$$ SELECT extract(epoch FROM clock_timestamp())::float8 $$;
CREATE FUNCTION date(bigint, text) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS
$$ SELECT to_char(to_timestamp($1) AT TIME ZONE 'UTC', 'YYYY-MM-DD') $$;
-- ASCII alone is folded.
CREATE FUNCTION lower(text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT pg_catalog.lower($1 COLLATE "C") $$;
-- A place below 0 is counted from the end.
CREATE FUNCTION substr(text, int) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT CASE WHEN $2 < 0 THEN pg_catalog.right($1, -$2) ELSE pg_catalog.substr($1, $2) END $$;
-- A list of ids. STRICT keeps it from being put into the statement as text: a conversion from text
-- counts as leaky, and what is leaky may not look up rows that row-level security guards; whole
-- tables were read for some ids.
CREATE FUNCTION json_each(ids text, OUT key bigint, OUT value bigint) RETURNS SETOF record
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE ROWS 20 AS
$$ SELECT n - 1, v::bigint FROM json_array_elements_text($1::json) WITH ORDINALITY e(v, n) $$;
-- Texts or objects: of a list its members, of an object its values by name.
CREATE FUNCTION json_each(document text, place text, OUT key text, OUT value text)
RETURNS SETOF record LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE ROWS 20 AS $$
  WITH d AS MATERIALIZED (
    SELECT CASE WHEN place = '$' THEN document::json
           ELSE document::json #> string_to_array(pg_catalog.substr(place, 3), '.') END AS j)
  SELECT (n - 1)::text, v FROM d, json_array_elements_text(
    CASE WHEN json_typeof(j) = 'array' THEN j ELSE '[]' END) WITH ORDINALITY e(v, n)
  UNION ALL
  SELECT e.key, e.value FROM d, json_each_text(
    CASE WHEN json_typeof(j) = 'object' THEN j ELSE '{}' END) e
$$;
CREATE FUNCTION json_text(text, text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT $1::json ->> $2 $$;
CREATE FUNCTION json_number(text, int) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT ($1::json ->> $2)::bigint $$;
CREATE OPERATOR ->> (LEFTARG = text, RIGHTARG = text, FUNCTION = json_text);
CREATE OPERATOR ->> (LEFTARG = text, RIGHTARG = int, FUNCTION = json_number);

-- --- numbers ------------------------------------------------------------------------------------------

CREATE TABLE tenant (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text COLLATE "C" NOT NULL UNIQUE);
-- The last number given to a row of a table, by tenant. Whoever writes holds the tenant's lock, so
-- numbers are in the order of commits: the feed stands on that.
CREATE TABLE counter (
  name text COLLATE "C" NOT NULL, last bigint NOT NULL, tenant int NOT NULL DEFAULT tenant(),
  PRIMARY KEY (tenant, name)
) WITH (fillfactor = 50);
CREATE FUNCTION next_number(_name text) RETURNS bigint LANGUAGE sql AS $$
  INSERT INTO counter(name, last) VALUES (_name, 1)
  ON CONFLICT (tenant, name) DO UPDATE SET last = counter.last + 1 RETURNING last
$$;

-- --- rows, as in SQLite -------------------------------------------------------------------------------

CREATE TABLE meta (
  key text COLLATE "C" NOT NULL, value text COLLATE "C" NOT NULL, tenant int NOT NULL DEFAULT tenant(),
  PRIMARY KEY (tenant, key)
);
CREATE TABLE project (
  id bigint NOT NULL DEFAULT next_number('project'), key text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL,
  root text COLLATE "C" NOT NULL DEFAULT '', parent text COLLATE "C" NOT NULL DEFAULT '',
  tenant int NOT NULL DEFAULT tenant(),
  PRIMARY KEY (tenant, id), UNIQUE (tenant, key), UNIQUE (tenant, name)
);
CREATE TABLE session (
  id bigint NOT NULL DEFAULT next_number('session'), key text COLLATE "C" NOT NULL, agent text COLLATE "C" NOT NULL,
  project bigint NOT NULL, started bigint NOT NULL, ended bigint NOT NULL,
  cwd text COLLATE "C" NOT NULL DEFAULT '', branch text COLLATE "C" NOT NULL DEFAULT '', title text COLLATE "C" NOT NULL DEFAULT '',
  transcript text COLLATE "C" NOT NULL DEFAULT '', tenant int NOT NULL DEFAULT tenant(),
  PRIMARY KEY (tenant, id), UNIQUE (tenant, key, agent, project),
  FOREIGN KEY (tenant, project) REFERENCES project
);
CREATE INDEX session_time ON session(tenant, ended);
CREATE INDEX session_project ON session(tenant, project, ended);

CREATE TABLE item (
  id bigint NOT NULL, ref text COLLATE "C" NOT NULL, kind text COLLATE "C" NOT NULL, source text COLLATE "C" NOT NULL, hash bytea NOT NULL,
  project bigint NOT NULL, session bigint NOT NULL, agent text COLLATE "C" NOT NULL, actor text COLLATE "C" NOT NULL,
  role text COLLATE "C" NOT NULL, prompt_number bigint NOT NULL, epoch bigint NOT NULL, updated bigint NOT NULL,
  type text COLLATE "C" NOT NULL, tool text COLLATE "C" NOT NULL, origin text COLLATE "C" NOT NULL, trust float8 NOT NULL,
  confidence float8 NOT NULL, status text COLLATE "C" NOT NULL, supersedes bigint NOT NULL,
  discovery_tokens bigint NOT NULL, title text COLLATE "C" NOT NULL, subtitle text COLLATE "C" NOT NULL,
  files_read text COLLATE "C" NOT NULL, files_modified text COLLATE "C" NOT NULL, concepts text COLLATE "C" NOT NULL,
  tags text COLLATE "C" NOT NULL, facts text COLLATE "C" NOT NULL, sections text COLLATE "C" NOT NULL, body text COLLATE "C" NOT NULL,
  call text COLLATE "C" NOT NULL, tenant int NOT NULL DEFAULT tenant(),
  PRIMARY KEY (tenant, id), FOREIGN KEY (tenant, project) REFERENCES project
);
CREATE UNIQUE INDEX item_identity ON item(tenant, ref, kind, source);
CREATE INDEX item_project_time ON item(tenant, project, epoch, id);
CREATE INDEX item_time ON item(tenant, epoch, id);
CREATE INDEX item_session_time ON item(tenant, session, epoch, id) WHERE session <> 0;
CREATE INDEX item_type ON item(tenant, lower(type), epoch) WHERE type <> '';
CREATE INDEX item_memory ON item(tenant, status, updated) WHERE kind = 'memory';
CREATE INDEX item_supersedes ON item(tenant, supersedes) WHERE supersedes <> 0;
CREATE INDEX item_recorded ON item(tenant, project, epoch) WHERE kind NOT IN ('message', 'prompt');
CREATE INDEX item_turn ON item(tenant, session, prompt_number)
  WHERE prompt_number <> 0 AND role NOT IN ('tool', 'thinking');
CREATE INDEX item_counted ON item(tenant, kind, status) WHERE discovery_tokens > 0;
CREATE INDEX item_put_away ON item(tenant, kind) WHERE status <> 'active';

CREATE TABLE item_file (
  name text COLLATE "C" NOT NULL, item bigint NOT NULL, path text COLLATE "C" NOT NULL, modified bigint NOT NULL,
  tenant int NOT NULL DEFAULT tenant(), PRIMARY KEY (tenant, name, item, path)
);
CREATE TABLE item_concept (
  concept text COLLATE "C" NOT NULL, item bigint NOT NULL, tenant int NOT NULL DEFAULT tenant(),
  PRIMARY KEY (tenant, concept, item)
);
CREATE INDEX item_concept_item ON item_concept(tenant, item);
CREATE TABLE item_evidence (
  item bigint NOT NULL, fact bigint NOT NULL, source bigint NOT NULL,
  tenant int NOT NULL DEFAULT tenant(), PRIMARY KEY (tenant, item, fact, source)
);
CREATE INDEX item_evidence_source ON item_evidence(tenant, source);
CREATE TABLE line_edit (
  item bigint NOT NULL, path text COLLATE "C" NOT NULL, lines bytea NOT NULL, added bytea NOT NULL,
  removed bytea NOT NULL, blind bigint NOT NULL, rowid bigint NOT NULL DEFAULT next_number('line_edit'),
  tenant int NOT NULL DEFAULT tenant(), PRIMARY KEY (tenant, item, rowid)
);
CREATE TABLE failure (
  item bigint NOT NULL, mark text COLLATE "C" NOT NULL, text text COLLATE "C" NOT NULL, command text COLLATE "C" NOT NULL,
  epoch bigint NOT NULL, came text COLLATE "C" NOT NULL, ended bigint NOT NULL, run bigint NOT NULL,
  changes text COLLATE "C" NOT NULL, tried text COLLATE "C" NOT NULL, tenant int NOT NULL DEFAULT tenant(),
  PRIMARY KEY (tenant, item, mark)
);
CREATE INDEX failure_mark ON failure(tenant, mark);
CREATE INDEX failure_command ON failure(tenant, command);

CREATE TABLE memory (
  item bigint NOT NULL, slug text COLLATE "C" NOT NULL, scope text COLLATE "C" NOT NULL, path text COLLATE "C" NOT NULL DEFAULT '',
  content text COLLATE "C" NOT NULL, version bigint NOT NULL, since bigint NOT NULL,
  reason text COLLATE "C" NOT NULL DEFAULT '', file bytea, file_hash text COLLATE "C" NOT NULL DEFAULT '',
  file_version bigint NOT NULL DEFAULT 0, tenant int NOT NULL DEFAULT tenant(),
  PRIMARY KEY (tenant, item), FOREIGN KEY (tenant, item) REFERENCES item ON DELETE CASCADE
);
CREATE INDEX memory_slug ON memory(tenant, slug);
CREATE TABLE memory_change (
  id bigint NOT NULL DEFAULT next_number('memory_change'), act bigint NOT NULL, item bigint NOT NULL,
  epoch bigint NOT NULL, who text COLLATE "C" NOT NULL, what text COLLATE "C" NOT NULL, why text COLLATE "C" NOT NULL DEFAULT '',
  before text COLLATE "C" NOT NULL, after text COLLATE "C" NOT NULL, tenant int NOT NULL DEFAULT tenant(),
  PRIMARY KEY (tenant, id), FOREIGN KEY (tenant, item) REFERENCES item ON DELETE CASCADE
);
CREATE INDEX memory_change_item ON memory_change(tenant, item);
CREATE INDEX memory_change_act ON memory_change(tenant, act);
CREATE FUNCTION refuse_update() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE 'the history of memories is never edited'; END $$;
CREATE TRIGGER memory_change_stays BEFORE UPDATE ON memory_change
  FOR EACH ROW EXECUTE FUNCTION refuse_update();
CREATE TABLE memory_gone (
  source text COLLATE "C" NOT NULL, ref text COLLATE "C" NOT NULL, slug text COLLATE "C" NOT NULL, type text COLLATE "C" NOT NULL,
  project text COLLATE "C" NOT NULL, epoch bigint NOT NULL, why text COLLATE "C" NOT NULL,
  tenant int NOT NULL DEFAULT tenant(), PRIMARY KEY (tenant, source, ref)
);

CREATE TABLE event (
  id text COLLATE "C" NOT NULL, session bigint NOT NULL, turn bigint NOT NULL DEFAULT 0, epoch bigint NOT NULL,
  name text COLLATE "C" NOT NULL, actor text COLLATE "C" NOT NULL DEFAULT '', tool text COLLATE "C" NOT NULL DEFAULT '',
  failed bigint NOT NULL DEFAULT 0, item bigint NOT NULL DEFAULT 0, skipped text COLLATE "C" NOT NULL DEFAULT '',
  "window" bigint NOT NULL DEFAULT 0, lag bigint NOT NULL DEFAULT 0,
  tenant int NOT NULL DEFAULT tenant(), PRIMARY KEY (tenant, id)
);
CREATE INDEX event_turn ON event(tenant, turn) WHERE turn <> 0;
CREATE TABLE turn (
  id bigint NOT NULL DEFAULT next_number('turn'), session bigint NOT NULL, key text COLLATE "C" NOT NULL,
  prompt bigint NOT NULL DEFAULT 0, closing bigint NOT NULL DEFAULT 0, started bigint NOT NULL,
  ended bigint NOT NULL DEFAULT 0, state text COLLATE "C" NOT NULL DEFAULT 'open',
  transcript text COLLATE "C" NOT NULL DEFAULT '', distilled bigint NOT NULL DEFAULT 0,
  tenant int NOT NULL DEFAULT tenant(), PRIMARY KEY (tenant, id), UNIQUE (tenant, session, key)
);
CREATE TABLE muted (
  session text COLLATE "C" NOT NULL, made bigint NOT NULL, tenant int NOT NULL DEFAULT tenant(),
  PRIMARY KEY (tenant, session)
);
CREATE TABLE undistilled (
  session bigint NOT NULL, changes bigint NOT NULL, since bigint NOT NULL,
  tenant int NOT NULL DEFAULT tenant(), PRIMARY KEY (tenant, session)
);
CREATE TABLE refined (
  session bigint NOT NULL, turn text COLLATE "C" NOT NULL, shape text COLLATE "C" NOT NULL, epoch bigint NOT NULL,
  model text COLLATE "C" NOT NULL, reason text COLLATE "C" NOT NULL, tenant int NOT NULL DEFAULT tenant(),
  PRIMARY KEY (tenant, session, turn)
);
CREATE TABLE archived (
  session bigint NOT NULL, ended bigint NOT NULL, epoch bigint NOT NULL,
  tenant int NOT NULL DEFAULT tenant(), PRIMARY KEY (tenant, session)
);
CREATE TABLE owed_start (
  session bigint NOT NULL, event text COLLATE "C" NOT NULL, source text COLLATE "C" NOT NULL, epoch bigint NOT NULL,
  tenant int NOT NULL DEFAULT tenant(), PRIMARY KEY (tenant, session)
);

CREATE TABLE injection (
  id bigint NOT NULL DEFAULT next_number('injection'), session bigint NOT NULL,
  prompt_number bigint NOT NULL, epoch bigint NOT NULL, event text COLLATE "C" NOT NULL, item bigint NOT NULL,
  score float8 NOT NULL, tokens bigint NOT NULL, reason text COLLATE "C" NOT NULL DEFAULT '',
  tenant int NOT NULL DEFAULT tenant(), PRIMARY KEY (tenant, id)
);
CREATE INDEX injection_session ON injection(tenant, session, epoch);
CREATE INDEX injection_item ON injection(tenant, item);
CREATE TABLE feedback (
  id bigint NOT NULL DEFAULT next_number('feedback'), item bigint NOT NULL, epoch bigint NOT NULL,
  what text COLLATE "C" NOT NULL, session bigint NOT NULL DEFAULT 0, tenant int NOT NULL DEFAULT tenant(),
  PRIMARY KEY (tenant, id)
);
CREATE INDEX feedback_item ON feedback(tenant, item);
CREATE TABLE spend (
  id bigint NOT NULL DEFAULT next_number('spend'), epoch bigint NOT NULL, model text COLLATE "C" NOT NULL,
  purpose text COLLATE "C" NOT NULL, tokens_in bigint NOT NULL, tokens_out bigint NOT NULL, cost float8 NOT NULL,
  until bigint NOT NULL DEFAULT 0, outcome text COLLATE "C" NOT NULL DEFAULT '',
  tenant int NOT NULL DEFAULT tenant(), PRIMARY KEY (tenant, id)
);
CREATE INDEX spend_time ON spend(tenant, epoch);
CREATE TABLE answered (
  day bigint NOT NULL, ms bigint NOT NULL, answers bigint NOT NULL,
  tenant int NOT NULL DEFAULT tenant(), PRIMARY KEY (tenant, day, ms)
);
CREATE TABLE source (
  path text COLLATE "C" NOT NULL, agent text COLLATE "C" NOT NULL, size bigint NOT NULL, mtime_ns bigint NOT NULL,
  "offset" bigint NOT NULL, line bigint NOT NULL, head text COLLATE "C" NOT NULL, state text COLLATE "C" NOT NULL DEFAULT '{}',
  tenant int NOT NULL DEFAULT tenant(), PRIMARY KEY (tenant, path)
);
CREATE TABLE skipped (
  agent text COLLATE "C" NOT NULL, reason text COLLATE "C" NOT NULL, records bigint NOT NULL,
  tenant int NOT NULL DEFAULT tenant(), PRIMARY KEY (tenant, agent, reason)
);
CREATE TABLE project_join (
  id bigint NOT NULL DEFAULT next_number('project_join'), key text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL,
  root text COLLATE "C" NOT NULL, parent text COLLATE "C" NOT NULL, into_key text COLLATE "C" NOT NULL, items bigint NOT NULL,
  sessions bigint NOT NULL, epoch bigint NOT NULL, undone bigint NOT NULL DEFAULT 0,
  tenant int NOT NULL DEFAULT tenant(), PRIMARY KEY (tenant, id)
);
CREATE TABLE project_join_row (
  joined bigint NOT NULL, what text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL, before text COLLATE "C" NOT NULL DEFAULT '',
  tenant int NOT NULL DEFAULT tenant(), PRIMARY KEY (tenant, joined, what, id)
);

-- --- vectors ------------------------------------------------------------------------------------------

CREATE SEQUENCE vector_number;
CREATE TABLE vector (
  id bigint NOT NULL, item bigint NOT NULL, part bigint NOT NULL, parts bigint NOT NULL,
  model text COLLATE "C" NOT NULL, value bytea STORAGE EXTERNAL NOT NULL, tenant int NOT NULL DEFAULT tenant(),
  PRIMARY KEY (tenant, id)
);
CREATE INDEX vector_item ON vector(tenant, item);
-- One bit a dimension, apart from the values: a search reads all of them, or all of a project.
CREATE TABLE vector_code (
  id bigint NOT NULL, item bigint NOT NULL, model text COLLATE "C" NOT NULL, code bit varying NOT NULL,
  project bigint NOT NULL, tenant int NOT NULL DEFAULT tenant(), PRIMARY KEY (tenant, id)
);
CREATE INDEX vector_code_project ON vector_code(tenant, project);
CREATE FUNCTION place_code() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  SELECT i.project INTO NEW.project FROM item i WHERE i.id = NEW.item;
  RETURN NEW;
END $$;
CREATE TRIGGER vector_code_placed BEFORE INSERT ON vector_code FOR EACH ROW EXECUTE FUNCTION place_code();
CREATE FUNCTION move_codes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE vector_code SET project = NEW.project WHERE id IN (SELECT v.id FROM vector v WHERE v.item = NEW.id);
  RETURN NULL;
END $$;
CREATE TRIGGER item_moved AFTER UPDATE OF project ON item
  FOR EACH ROW WHEN (OLD.project <> NEW.project) EXECUTE FUNCTION move_codes();
CREATE TABLE unembedded (
  item bigint NOT NULL, epoch bigint NOT NULL, queued bigint NOT NULL,
  tenant int NOT NULL DEFAULT tenant(), PRIMARY KEY (tenant, item)
);
CREATE INDEX unembedded_time ON unembedded(tenant, epoch);

-- --- the index: everything below can be rebuilt from `item` (yester reindex) ---------------------------

CREATE TABLE item_terms (
  item bigint NOT NULL, vector bytea STORAGE EXTERNAL NOT NULL, tenant int NOT NULL DEFAULT tenant(),
  PRIMARY KEY (tenant, item)
);
-- Which items of a project hold a term: part 0 has the last that came, and how many there are in all;
-- the others 256 each. Short enough to lie in the row (8,160 bytes), so reading one is one page.
CREATE TABLE posting (
  term int NOT NULL, project int NOT NULL, part int NOT NULL, items int NOT NULL,
  ids int[] STORAGE PLAIN NOT NULL, tenant int NOT NULL DEFAULT tenant(),
  PRIMARY KEY (tenant, term, project, part)
) WITH (fillfactor = 90);
-- What has come (1) and gone (-1) since, an item a row: a search adds it up, `fold` puts it into the
-- lists. Of an item what has gone was in the lists, and what has come is not yet there.
CREATE TABLE unfolded (
  item int NOT NULL, sign smallint NOT NULL, project int NOT NULL, terms int[] NOT NULL,
  tenant int NOT NULL DEFAULT tenant(), PRIMARY KEY (tenant, item, sign)
);
-- The dictionary of a project: what others say is nobody's business.
CREATE TABLE term (
  text text COLLATE "C" NOT NULL, hash int NOT NULL, project int NOT NULL, tenant int NOT NULL DEFAULT tenant(),
  PRIMARY KEY (tenant, text, project)
);
CREATE TABLE length (
  project bigint NOT NULL, kind text COLLATE "C" NOT NULL, field bigint NOT NULL, items bigint NOT NULL,
  terms bigint NOT NULL, tenant int NOT NULL DEFAULT tenant(), PRIMARY KEY (tenant, project, kind, field)
);

-- Sessions by their key, else by how it begins; the shortest beginning has six characters.
CREATE FUNCTION find_sessions(_key text, _begin text) RETURNS SETOF bigint
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT id FROM session WHERE key = _key
  UNION ALL
  SELECT id FROM session WHERE key LIKE _begin ESCAPE '\' AND length(_key) >= 6
     AND NOT EXISTS (SELECT 1 FROM session WHERE key = _key)
$$;
-- The items that hold a term, of these projects or (NULL) of all.
CREATE FUNCTION holding(_term int, _projects bigint[]) RETURNS SETOF int
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT x.id FROM posting p CROSS JOIN unnest(p.ids) x(id)
   WHERE p.term = _term AND (_projects IS NULL OR p.project = ANY (_projects))
     AND NOT EXISTS (SELECT 1 FROM unfolded u WHERE u.item = x.id AND u.sign < 0)
  UNION ALL
  SELECT u.item FROM unfolded u
   WHERE u.sign > 0 AND _term = ANY (u.terms) AND (_projects IS NULL OR u.project = ANY (_projects))
$$;
-- Everything that is not yet in the lists, into them, where that are so many items. Others may write
-- meanwhile; where somebody else folds, nothing is done. Who must have everything in the lists says 0.
CREATE FUNCTION fold(_least int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE taken unfolded[];
BEGIN
  IF _least = 0 THEN PERFORM pg_advisory_xact_lock(7002, tenant());
  ELSIF NOT pg_try_advisory_xact_lock(7002, tenant()) THEN RETURN;
  END IF;
  IF (SELECT count(*) FROM unfolded) < _least THEN RETURN; END IF;
  -- What somebody is taking out again is left to the next time.
  WITH free AS (SELECT item, sign FROM unfolded FOR UPDATE SKIP LOCKED),
  gone AS (DELETE FROM unfolded u USING free f WHERE u.item = f.item AND u.sign = f.sign RETURNING u)
  SELECT array_agg(g.u) INTO taken FROM gone g;
  UPDATE posting p
     SET ids = ARRAY(SELECT y FROM unnest(p.ids) y WHERE y <> ALL (d.less) ORDER BY y)
    FROM (SELECT x.term, u.project, array_agg(u.item) AS less
            FROM unnest(taken) u CROSS JOIN unnest(u.terms) x(term) WHERE u.sign < 0 GROUP BY 1, 2) d
   WHERE p.term = d.term AND p.project = d.project AND p.ids && d.less;
  WITH gone AS (SELECT item, sign, project, terms FROM unnest(taken)),
  delta AS (
    SELECT x.term, g.project, sum(g.sign)::int AS items,
           coalesce(array_agg(g.item) FILTER (WHERE g.sign > 0), '{}') AS more
      FROM gone g CROSS JOIN unnest(g.terms) x(term) GROUP BY 1, 2),
  merged AS (
    SELECT d.term, d.project, d.items + coalesce(p.items, 0) AS items,
           ARRAY(SELECT y FROM unnest(coalesce(p.ids, '{}') || d.more) y ORDER BY y) AS ids,
           (SELECT coalesce(max(q.part), 0) FROM posting q
             WHERE q.term = d.term AND q.project = d.project) AS top
      FROM delta d LEFT JOIN posting p ON p.term = d.term AND p.project = d.project AND p.part = 0),
  cut AS (SELECT *, greatest(cardinality(ids) - 1, 0) / 256 AS whole FROM merged WHERE items > 0),
  older AS (
    INSERT INTO posting(term, project, part, items, ids)
    SELECT term, project, top + 1 + g, 256, ids[g * 256 + 1 : g * 256 + 256]
      FROM cut CROSS JOIN generate_series(0, whole - 1) g),
  emptied AS (
    DELETE FROM posting p USING merged m
     WHERE m.items <= 0 AND p.term = m.term AND p.project = m.project)
  INSERT INTO posting(term, project, part, items, ids)
  SELECT term, project, 0, items, ids[whole * 256 + 1 : ] FROM cut
  ON CONFLICT (tenant, term, project, part) DO UPDATE SET items = excluded.items, ids = excluded.ids;
END $$;
