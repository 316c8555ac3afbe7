-- min() and max() of NaN in binary: the bits of Go's NaN
CREATE TABLE t_f (k0 smallint NOT NULL, "C 8" double precision NOT NULL);
ALTER TABLE t_f REPLICA IDENTITY FULL;
INSERT INTO t_f VALUES
 ('9', 'NaN');
-- accelerated
-- ask extended {1}
SELECT min(t_f."C 8") FROM t_f;
