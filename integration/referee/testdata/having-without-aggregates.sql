-- the planner moves a HAVING without aggregates to WHERE, where it fails for rows that other conditions remove
CREATE TABLE t_f (k0 smallint NOT NULL, "C 0" real, c4 double precision, PRIMARY KEY (k0));
INSERT INTO t_f VALUES
 ('20036', NULL, '32.467');
-- ask simple
SELECT min(c4) FROM t_f WHERE ("C 0" = (-1)) GROUP BY (k0 + k0) HAVING ((k0 + k0) IS NULL);
