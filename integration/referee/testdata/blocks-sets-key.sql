-- A sub-select that is a key of grouping sets is null in the sets that lack it, wherever it is written again.
CREATE TABLE t_f (k integer NOT NULL, c integer, PRIMARY KEY (k));
INSERT INTO t_f VALUES
 (1, 5),
 (2, 7);
-- ask simple
SELECT (SELECT max(b.c) FROM t_f b), c, count(*) FROM t_f a GROUP BY CUBE ((SELECT max(b.c) FROM t_f b), c);
