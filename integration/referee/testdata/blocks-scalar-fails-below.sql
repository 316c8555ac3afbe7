-- PostgreSQL moves a condition with a scalar below the HAVING of a derived table: it fails for groups that are not left.
CREATE TABLE t_f (k integer NOT NULL, c integer, PRIMARY KEY (k));
INSERT INTO t_f VALUES
 (1, 5),
 (2, 7);
-- ask simple
SELECT count(*) FROM (SELECT k, sum(c) AS s FROM t_f GROUP BY k HAVING sum(c) > 6) AS d WHERE 1 / (k - (SELECT min(k) FROM t_f)) >= 0;
