-- An empty table, reduced twice.
CREATE TABLE t_f (k0 integer NOT NULL, c0 uuid, PRIMARY KEY (k0));
INSERT INTO t_f SELECT i, md5((i % 30)::text)::uuid FROM generate_series(1, 240) i;
CREATE TABLE t_d2 (k3_0 bigint NOT NULL, c2 uuid, PRIMARY KEY (k3_0));
-- ask simple
SELECT 1 FROM t_d2 s1 CROSS JOIN LATERAL (SELECT count(*) AS b5 FROM t_f s4 WHERE s1.c2 = s4.c0) AS s3 WHERE (s3.b5 IN (SELECT s6.k3_0 FROM t_d2 s6));
