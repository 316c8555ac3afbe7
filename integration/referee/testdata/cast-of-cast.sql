-- A cast to numeric(p) beside a numeric with decimals: the cast was dropped, and did not fail
CREATE TABLE t_f (k0 integer NOT NULL, a numeric(12,2), b integer, PRIMARY KEY (k0));
INSERT INTO t_f VALUES
 ('1', NULL, '2147483647');
-- ask simple
SELECT a + b::numeric(4,0) FROM t_f;
