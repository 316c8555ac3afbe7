-- a key that a condition fixes, compared with true
CREATE TABLE t_f (k0 text NOT NULL, a int, b int, PRIMARY KEY (k0));
INSERT INTO t_f VALUES
 ('1', '1', '1'),
 ('2', '1', '2'),
 ('3', '3', '2');
-- ask simple
SELECT a, count(*) FROM t_f WHERE (a = 1) = true GROUP BY ROLLUP (a) ORDER BY a NULLS FIRST;
