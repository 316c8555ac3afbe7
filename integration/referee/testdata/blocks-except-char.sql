-- From version 18 on a Query's EXCEPT has the left side's length, also where a side is left to the server.
CREATE TABLE t_f (k integer NOT NULL, c character(4), PRIMARY KEY (k));
INSERT INTO t_f VALUES
 (1, 'ab'),
 (2, NULL);
CREATE TABLE t_d (k integer NOT NULL, c character(4), PRIMARY KEY (k));
INSERT INTO t_d VALUES
 (1, 'b');
-- ask simple
SELECT c FROM t_f EXCEPT SELECT max(c) FROM t_d ORDER BY 1;
