-- A condition that says with a scalar whether a sub-select has rows was moved into a derived table, which has not that scalar.
CREATE TABLE t_f (k integer NOT NULL, c integer, PRIMARY KEY (k));
INSERT INTO t_f VALUES
 (1, 5),
 (2, 7);
-- ask simple
SELECT b FROM (SELECT c AS b, count(*) FROM t_f GROUP BY c) AS d WHERE b IN (SELECT one + 4 FROM (SELECT 1 AS one, c FROM t_f GROUP BY c) e);
