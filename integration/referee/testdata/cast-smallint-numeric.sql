-- A cast to a smaller integer within one to numeric fails by itself
CREATE TABLE t_f (k0 char(8) NOT NULL, c6 integer, PRIMARY KEY (k0));
INSERT INTO t_f VALUES
 ('k263    ', '32768');
-- ask simple
SELECT (c6::smallint % '16'::numeric) FROM t_f;
