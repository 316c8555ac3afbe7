-- A join by what is not null where a left join has made nulls: rows without a partner in the left join were lost.
CREATE TABLE t_f (k integer NOT NULL, c integer, PRIMARY KEY (k));
CREATE TABLE t_d (k integer NOT NULL, c integer, PRIMARY KEY (k));
INSERT INTO t_f VALUES
 (1, 5),
 (2, 6),
 (3, NULL);
INSERT INTO t_d VALUES
 (0, 1),
 (5, 2),
 (7, 0);
-- ask simple
SELECT a.k, b.c, d.k FROM t_f a LEFT JOIN t_d b ON b.k = a.c JOIN t_d d ON d.k = coalesce(b.c - 2, 7);
-- ask simple
SELECT a.k, d.c FROM t_f a LEFT JOIN t_d b ON b.k = a.c LEFT JOIN t_d d ON d.k = coalesce(b.c, 7);
-- ask simple
SELECT a.k FROM t_f a WHERE (SELECT count(*) FROM t_d b WHERE b.k = a.c) IN (SELECT c FROM t_d);
