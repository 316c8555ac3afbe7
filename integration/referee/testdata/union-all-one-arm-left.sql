-- A Query is described with the modifier of the one arm of UNION ALL that can have rows, a prepared statement with none.
CREATE TABLE t_f (k0 integer NOT NULL, c6 varchar(10) NOT NULL, PRIMARY KEY (k0));
INSERT INTO t_f VALUES
 (1, 'a'),
 (2, 'b');
-- ask simple
SELECT s1.c6 AS b4 FROM t_f s1 UNION ALL SELECT 'ASIA'::varchar FROM t_f s3 WHERE ((-47) = ANY (ARRAY[963, (-7), 0]));
