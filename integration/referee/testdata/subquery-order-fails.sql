-- ORDER BY of a subquery that is sorted again fails all the same
CREATE TABLE t_f (k0 integer NOT NULL, c3 smallint, PRIMARY KEY (k0));
INSERT INTO t_f VALUES
 ('20039', '32767');
-- ask simple
SELECT w.w6 FROM (SELECT 1 AS w6 FROM t_f t0 GROUP BY t0.c3 ORDER BY (percentile_disc(0.333) WITHIN GROUP (ORDER BY (t0.k0 * t0.k0)) * t0.c3)) AS w ORDER BY 1;
