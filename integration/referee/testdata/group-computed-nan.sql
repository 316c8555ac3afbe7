-- Groups by a NaN with a sign, which binary output shows
CREATE TABLE t_f (k0 integer NOT NULL, c2 real, PRIMARY KEY (k0));
INSERT INTO t_f VALUES
 ('1', 'Infinity'),
 ('2', 'NaN');
-- ask extended {1}
SELECT c2 - c2, count(*) FROM t_f WHERE k0 = 1 GROUP BY c2 - c2;
