-- What has gone is looked up once, not once for each part of a list: while others write, it is much.
CREATE OR REPLACE FUNCTION holding(_term int, _projects bigint[]) RETURNS SETOF int
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT x.id FROM posting p CROSS JOIN unnest(p.ids) x(id)
   WHERE p.term = _term AND (_projects IS NULL OR p.project = ANY (_projects))
     AND x.id NOT IN (SELECT u.item FROM unfolded u WHERE u.sign < 0)
  UNION ALL
  SELECT u.item FROM unfolded u
   WHERE u.sign > 0 AND _term = ANY (u.terms) AND (_projects IS NULL OR u.project = ANY (_projects))
$$;
-- It is emptied all the time, and every search reads what is left of it.
ALTER TABLE unfolded SET (autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);
