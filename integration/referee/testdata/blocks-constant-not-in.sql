-- A constant that is not one of a correlated sub-select's values: its correlation was taken for the comparison.
CREATE TABLE t_f (k integer NOT NULL, c smallint, m integer, PRIMARY KEY (k));
INSERT INTO t_f VALUES
 (1, NULL, 5),
 (2, 7, 5),
 (3, 8, 6),
 (4, 15, NULL);
-- ask simple
SELECT k, 15 <> ALL (SELECT b.c FROM t_f b WHERE b.m = a.m), 7 IN (SELECT b.c FROM t_f b WHERE b.m = a.m) FROM t_f a WHERE 8 NOT IN (SELECT b.c FROM t_f b WHERE b.m = a.m);
