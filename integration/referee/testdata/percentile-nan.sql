-- a panic: a percentile of values of which one is not a number, the others equal
CREATE TABLE t_f (k0 integer NOT NULL, c0 double precision, c1 real, PRIMARY KEY (k0));
INSERT INTO t_f VALUES
 ('1', 'Infinity', 'NaN'), ('2', 'NaN', 'NaN'), ('3', 'Infinity', 'Infinity'), ('4', NULL, NULL), ('5', 'Infinity', 'NaN'), ('6', 'Infinity', 'Infinity'), ('7', 'Infinity', 'Infinity'), ('8', 'NaN', 'NaN');
-- ask simple
SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY c0), percentile_disc(0.9) WITHIN GROUP (ORDER BY c1 DESC), percentile_disc(1) WITHIN GROUP (ORDER BY c0), percentile_disc(0.1) WITHIN GROUP (ORDER BY nullif(c0, 0)) FROM t_f;
