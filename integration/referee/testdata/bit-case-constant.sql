-- A CASE of which a constant decides has the length of the arm that is left.
-- collation ci
CREATE TABLE t_d0 (k1_0 numeric(9,1) NOT NULL, PRIMARY KEY (k1_0));
-- ask simple
SELECT CASE WHEN (s1.b3 < 1) THEN '1'::bit WHEN (s1.b3 NOT BETWEEN '174' AND 45) THEN '1'::bit ELSE NULL END AS o4 FROM (SELECT 95 AS b3 FROM t_d0 s2) AS s1;
