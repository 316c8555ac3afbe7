-- the first groups by a sum that is -2^64, which was taken for 0
CREATE TABLE t_f (k0 int PRIMARY KEY, g int, v bigint);
INSERT INTO t_f VALUES
 ('1', '1', '-1'),
 ('2', '2', '-9223372036854775808'),
 ('3', '2', '-9223372036854775808'),
 ('4', '3', '-3'),
 ('5', '4', '4'),
 ('6', '5', '5'),
 ('7', '6', '6'),
 ('8', '7', '7'),
 ('9', '8', '8'),
 ('10', '9', '9'),
 ('11', '10', '10');
-- ask simple
SELECT sum(v) FROM t_f GROUP BY g ORDER BY 1 LIMIT 1;
