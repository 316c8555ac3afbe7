-- An expression over GROUPING() of a derived table is none that PostgreSQL takes for a key of grouping sets, though it has the same value.
CREATE TABLE t_f (k0 integer NOT NULL, g0_k1_0 smallint);
ALTER TABLE t_f REPLICA IDENTITY FULL;
CREATE OR REPLACE VIEW t_f_view AS SELECT * FROM t_f;
-- ask simple
SELECT ((s1.b6 + date '1995-06-09') >= timestamp '2000-01-08') FROM (SELECT GROUPING(s2.g0_k1_0) AS b6 FROM t_f s2 GROUP BY ROLLUP (s2.g0_k1_0)) AS s1 GROUP BY ROLLUP (s1.b6, ((s1.b6 + date '1995-06-09') >= date '2000-01-08'));
