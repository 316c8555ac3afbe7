-- A key of grouping sets that the server folds to a constant: a second output of it is no key
CREATE TABLE t_d1 (k2_0 char(8) NOT NULL, c2 integer, PRIMARY KEY (k2_0));
INSERT INTO t_d1 VALUES
 ('k198    ', NULL);
-- ask simple
SELECT coalesce(nullif('1.2e+02'::double precision, '136.95453022456763'::double precision), ('47'::double precision + t1.c2)), coalesce(nullif('1.2e+02'::double precision, '136.95453022456763'::double precision), ('47'::double precision + t1.c2)) FROM t_d1 t1 GROUP BY ROLLUP (coalesce(nullif('1.2e+02'::double precision, '136.95453022456763'::double precision), ('47'::double precision + t1.c2)));
