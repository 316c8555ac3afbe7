-- A sum over a sum of a date: its bounds were unknown, and infinity was added to
-- collation en_US.UTF-8
CREATE TABLE t_limits (k integer NOT NULL, l0 smallint, l9 date, PRIMARY KEY (k));
INSERT INTO t_limits VALUES
 ('0', '-1', '-infinity');
-- ask simple
SELECT ((l9 + l0) + (2147483647)::integer) FROM t_limits;
