-- two outputs of one expression are two keys of CUBE
CREATE TABLE t_f (k0 bigint NOT NULL, c0 numeric(18,4), PRIMARY KEY (k0));
INSERT INTO t_f VALUES
 ('139', '-0.0001');
-- ask simple
SELECT t_f.k0, t_f.k0 FROM t_f GROUP BY CUBE (2, 1);
