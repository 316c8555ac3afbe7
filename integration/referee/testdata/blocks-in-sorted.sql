-- The ORDER BY of a sub-select after IN fails, though the order is no matter.
CREATE TABLE t_f (k integer NOT NULL, a integer, PRIMARY KEY (k));
INSERT INTO t_f VALUES
 (1, 5),
 (2, 6);
-- ask simple
SELECT count(*) FROM t_f WHERE a IN (SELECT a FROM t_f ORDER BY 1 / (k - 2));
