-- A call whose arguments are constant once CASE is folded fails as PostgreSQL plans, though no row needs it.
CREATE TABLE t_f (k0 date NOT NULL, PRIMARY KEY (k0));
-- ask simple
SELECT '1996-10-20 00:00:00+00'::timestamptz FROM (SELECT avg(8) AS b12 FROM t_f s2) AS s1 WHERE (true IS NOT TRUE) GROUP BY substring('MAIL'::text, 74, CASE WHEN true THEN (-1) WHEN (s1.b12 NOT BETWEEN (-1.13) AND 3522.75) THEN 8784 ELSE NULL END);
