-- 5 < a is not the key a > 5 of grouping sets, where a is another one
CREATE TABLE t_f (k0 integer NOT NULL, c5 real NOT NULL, d date NOT NULL, a integer NOT NULL, PRIMARY KEY (k0));
INSERT INTO t_f VALUES ('27', '1', '2020-01-02', '7'), ('28', '2', '2020-01-02', '5'), ('29', '0', '2019-01-02', '3');
-- ask simple
SELECT count(*) FROM t_f GROUP BY ROLLUP (a, a > 5) HAVING 5 < a;
