-- A count of none that is looked up, in a core that has not what was counted.
CREATE TABLE t_f (k0 integer NOT NULL, c0 bigint, PRIMARY KEY (k0));
INSERT INTO t_f SELECT i, i % 20 FROM generate_series(1, 200) i;
CREATE TABLE t_d2 (k3_0 bigint NOT NULL, c2 bigint, PRIMARY KEY (k3_0));
INSERT INTO t_d2 VALUES
 (0, 100),
 (5, 3),
 (10, 4),
 (11, 200);
-- accelerated
-- ask simple
SELECT s1.c2, s3.b5 FROM t_d2 s1 CROSS JOIN LATERAL (SELECT count(*) AS b5 FROM t_f s4 WHERE s1.c2 = s4.c0) AS s3 WHERE s3.b5 IN (SELECT s6.k3_0 FROM t_d2 s6) ORDER BY 1;
