-- infinity - infinity is a NaN with a sign, which min() keeps
CREATE TABLE t_f ("C 2" real);
ALTER TABLE t_f REPLICA IDENTITY FULL;
INSERT INTO t_f VALUES
 ('Infinity');
-- ask extended {1}
SELECT min((t_f."C 2" - t_f."C 2")) FROM t_f;
