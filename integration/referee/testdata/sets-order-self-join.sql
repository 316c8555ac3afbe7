-- ORDER BY one of two keys that are the same column of a table joined to itself: version 18 scans it once and does not sort by the second
CREATE TABLE t_d0 (k1_0 integer NOT NULL, c0 timestamptz, PRIMARY KEY (k1_0));
INSERT INTO t_d0 VALUES
 ('4', '2018-07-01 00:00:00+00'),
 ('5', '2018-07-01 00:00:00+00'),
 ('6', '2018-07-01 00:00:00+00'),
 ('7', '2018-07-01 00:00:00+00');
-- ask simple
SELECT t_d0.c0, t1.c0 FROM t_d0 JOIN t_d0 t1 ON t_d0.k1_0 = t1.k1_0 GROUP BY ROLLUP (t_d0.c0, t1.c0, ('1992-01-02'::date + t1.k1_0)) ORDER BY 2;
