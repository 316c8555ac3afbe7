-- 5 < a is not the key a > 5 that all grouping sets have, but of the key a, which some lack
CREATE TABLE t_f (k0 integer NOT NULL, a integer NOT NULL, PRIMARY KEY (k0));
INSERT INTO t_f VALUES ('27', '7'), ('28', '5'), ('29', '3');
-- ask simple
SELECT 5 < a, count(*) FROM t_f GROUP BY (a > 5), ROLLUP (a);
