-- A code knows its project: whether an account may see it is asked of that, as of an item. By its item
-- the planner would rather read all items once than some of them one by one.
DROP POLICY of_members ON vector_code;
CREATE POLICY of_members ON vector_code AS RESTRICTIVE
  USING ((SELECT account()) = 0 OR project NOT IN (SELECT hidden_projects())) WITH CHECK (true);
CREATE POLICY of_token ON vector_code AS RESTRICTIVE
  USING ((SELECT allowed_projects()) IS NULL OR project = ANY ((SELECT allowed_projects())::bigint[]))
  WITH CHECK (true);

-- JSON may hold a NUL (\u0000), and no text here may: it is read as the one that stands for it in texts.
CREATE FUNCTION storable(text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN strpos($1, '\u0000') = 0 THEN $1
         ELSE regexp_replace($1, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\ufffd', 'g') END
$$;
CREATE OR REPLACE FUNCTION json_each(document text, place text, OUT key text, OUT value text)
RETURNS SETOF record LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE ROWS 20 AS $$
  WITH d AS MATERIALIZED (
    SELECT CASE WHEN place = '$' THEN storable(document)::json
           ELSE storable(document)::json #> string_to_array(pg_catalog.substr(place, 3), '.') END AS j)
  SELECT (n - 1)::text, v FROM d, json_array_elements_text(
    CASE WHEN json_typeof(j) = 'array' THEN j ELSE '[]' END) WITH ORDINALITY e(v, n)
  UNION ALL
  SELECT e.key, e.value FROM d, json_each_text(
    CASE WHEN json_typeof(j) = 'object' THEN j ELSE '{}' END) e
$$;
CREATE OR REPLACE FUNCTION json_text(text, text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT storable($1)::json ->> $2 $$;
