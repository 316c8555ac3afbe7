-- a row too few: HAVING over a percentile that the output does not show, in grouping sets
CREATE TABLE t_f (k0 integer NOT NULL, c0 time, c8 text NOT NULL, PRIMARY KEY (k0));
INSERT INTO t_f VALUES
 ('20402', '03:36:34', 'Customer#2'),
 ('20403', '20:35:46', 'Customer#2');
-- ask simple
SELECT '1'::double precision FROM t_f GROUP BY ROLLUP (t_f.c8, (t_f.c0 = ANY (ARRAY['03:36:34'::time, '03:36:34'::time]))) HAVING (percentile_disc(0.25) WITHIN GROUP (ORDER BY t_f.c0) IS NOT NULL);
