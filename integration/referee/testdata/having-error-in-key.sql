-- error "", want "ERROR 22011: negative substring length not allowed |  |  | at 0 in "
CREATE TABLE t_d1 (k2_0 varchar NOT NULL, c2 timetz, r1_k1_0 char(8), PRIMARY KEY (k2_0));
CREATE OR REPLACE VIEW t_d1_view AS SELECT * FROM t_d1;
INSERT INTO t_d1 VALUES
 ('MAIL', '10:00:00-00:30', 'k26     ');
-- ask simple
SELECT ' '::name AS a6 FROM (SELECT grouping(s28.r1_k1_0) AS b29 FROM t_d1 s28 GROUP BY CUBE (s28.r1_k1_0)) AS s27 GROUP BY overlay('\x00'::bytea, '\xff', s27.b29, 1) HAVING (sum(20569) = 1.31);
