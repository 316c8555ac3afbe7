-- The bounds of a bigint divided by 1 left out the least: it was ranked last
CREATE TABLE t_f (k0 integer NOT NULL, c3 bigint, PRIMARY KEY (k0));
INSERT INTO t_f VALUES
 ('169', '-9223372036854775808'),
 ('170', '-1');
-- ask simple
SELECT percentile_disc(0.25) WITHIN GROUP (ORDER BY (t0.c3 / 1) DESC) FROM t_f t0;
