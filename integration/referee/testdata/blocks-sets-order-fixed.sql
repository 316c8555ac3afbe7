-- ORDER BY a key of grouping sets that a condition fixes, where the condition is moved into a derived table.
CREATE TABLE t_f (k bigint NOT NULL, a integer, b integer, PRIMARY KEY (k));
INSERT INTO t_f VALUES
 (1, 5, 1),
 (2, 5, 2),
 (3, 6, 2),
 (4, 5, 2);
-- ask simple
SELECT x.a, x.b, count(*) FROM (SELECT DISTINCT a, b FROM t_f) AS x WHERE x.a = 5 GROUP BY CUBE (x.a, x.b) ORDER BY x.a, x.b;
