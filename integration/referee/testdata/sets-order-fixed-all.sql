-- a key that a condition fixes, in all that OR joins
CREATE TABLE t_f (k0 text NOT NULL, a int, b int, PRIMARY KEY (k0));
INSERT INTO t_f VALUES
 ('1', '1', '1'),
 ('2', '1', '2'),
 ('3', '3', '2');
-- ask simple
SELECT a, count(*) FROM t_f WHERE a = 1 AND b = 1 OR a = 1 AND b = 2 GROUP BY ROLLUP (a) ORDER BY a NULLS FIRST;
