-- A side of UNION that shows some of the columns of another UNION ALL has its blocks no more.
CREATE TABLE t_f (k bigint NOT NULL, a integer, b integer, PRIMARY KEY (k));
INSERT INTO t_f VALUES
 (1, 5, 1),
 (2, 6, 2);
-- ask simple
SELECT a FROM (SELECT a, b FROM t_f UNION ALL SELECT b, a FROM t_f) AS x UNION SELECT b FROM t_f;
