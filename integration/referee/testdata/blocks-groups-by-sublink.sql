-- A condition on a group's sub-select removes no rows before the aggregate, which fails.
-- collation icu
CREATE TABLE t_f (k integer NOT NULL, c numeric(9,2), PRIMARY KEY (k));
CREATE TABLE t_d (k numeric(9,2) NOT NULL, c boolean, PRIMARY KEY (k));
INSERT INTO t_d VALUES
 (0.45, 'f');
-- ask simple
SELECT s1.b6 FROM (SELECT s2.k AS b6, CASE WHEN NOT EXISTS (SELECT coalesce(sum(s4.c), s2.k) FROM t_f s4) THEN '2001:db8::/32'::inet END AS b8 FROM t_d s2 GROUP BY s2.k, CASE WHEN NOT EXISTS (SELECT coalesce(sum(s4.c), s2.k) FROM t_f s4) THEN '2001:db8::/32'::inet END HAVING percentile_disc(0.25) WITHIN GROUP (ORDER BY varbit('11111111'::bit varying, 4, s2.c)) < bit varying '1') AS s1 WHERE s1.b8 = s1.b8;
