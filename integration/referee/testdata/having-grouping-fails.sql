-- HAVING over GROUPING() removes groups whose aggregates have failed
CREATE TABLE t_f (k0 timestamp NOT NULL, c0 bigint, c1 numeric(18,18), PRIMARY KEY (k0));
INSERT INTO t_f VALUES
 ('1992-01-06 05:05:00', '3290611', '-0.014676916605264492');
-- ask simple
SELECT w.w4 FROM (SELECT GROUPING(t_f.c1) AS w1, sum(DISTINCT t_f.c0::smallint) AS w4 FROM t_f GROUP BY t_f.c1) AS w WHERE w.w1 > 2;
