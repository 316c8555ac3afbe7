-- From version 18 on the server describes EXCEPT in a Query with the left side's modifier.
CREATE TABLE t_f (k integer NOT NULL, n numeric(9,2), m numeric(12,2), PRIMARY KEY (k));
INSERT INTO t_f VALUES
 (1, 1.50, 1.50),
 (2, NULL, 2.25),
 (3, 3.75, NULL);
-- ask simple
SELECT n AS x FROM t_f EXCEPT SELECT m FROM t_f WHERE k = 2;
