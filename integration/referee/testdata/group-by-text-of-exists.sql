-- Groups by text that only a left join's partner decides: its row of nulls has a string that another entry has.
-- collation en_US.UTF-8
CREATE TABLE t_f (k0 date NOT NULL, k1 smallint NOT NULL, c1 varchar, c2 double precision);
CREATE UNIQUE INDEX t_f_key ON t_f (k0, k1);
ALTER TABLE t_f REPLICA IDENTITY USING INDEX t_f_key;
CREATE OR REPLACE VIEW t_f_view AS SELECT * FROM t_f;
INSERT INTO t_f VALUES
 ('1992-02-08', '3', NULL, '92'),
 ('1992-02-09', '3', '-a', '1');
-- ask simple
SELECT ''::text FROM t_f s1 GROUP BY substring('x1'::text, 0, CASE WHEN (EXISTS (SELECT s3.c2 FROM t_f s3 WHERE s3.c1 = s1.c1)) THEN 3 ELSE 645 END);
