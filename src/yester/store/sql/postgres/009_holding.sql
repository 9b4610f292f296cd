-- The lists of a word in quotation marks are read whole: taken apart in the target list, which passes
-- the ids on one by one, and not as a table for each part.
CREATE OR REPLACE FUNCTION holding(_term int, _projects bigint[]) RETURNS SETOF int
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT x.id FROM (
    SELECT unnest(p.ids) AS id FROM posting p
     WHERE p.term = _term AND (_projects IS NULL OR p.project = ANY (_projects))) x
   WHERE x.id NOT IN (SELECT u.item FROM unfolded u WHERE u.sign < 0)
  UNION ALL
  SELECT u.item FROM unfolded u
   WHERE u.sign > 0 AND _term = ANY (u.terms) AND (_projects IS NULL OR u.project = ANY (_projects))
$$;
