-- ORDER BY 5 < a is not by the output and key a > 5
CREATE TABLE t_f (k0 integer NOT NULL, a integer NOT NULL, PRIMARY KEY (k0));
INSERT INTO t_f VALUES ('27', '7'), ('28', '5'), ('29', '3');
-- ask simple
SELECT a > 5, a, count(*) FROM t_f GROUP BY ROLLUP (a, a > 5) ORDER BY 5 < a, a, 1 NULLS FIRST;
