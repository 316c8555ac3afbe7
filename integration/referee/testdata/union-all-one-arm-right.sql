-- A Query is described with the modifier of the one arm of UNION ALL that can have rows, be it the right one.
CREATE TABLE t_f (k0 integer NOT NULL, c6 varchar(10) NOT NULL, PRIMARY KEY (k0));
INSERT INTO t_f VALUES
 (1, 'a'),
 (2, 'b');
-- ask simple
SELECT varchar 'ASIA' AS b4 FROM t_f s1 WHERE (8 = (-130)) UNION ALL SELECT c6 FROM t_f s2;
