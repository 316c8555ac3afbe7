-- Keys of grouping sets of which one is part of the other, shown as they are written
CREATE TABLE t_f (k0 integer NOT NULL, c5 real NOT NULL, d date NOT NULL, a integer NOT NULL, PRIMARY KEY (k0));
INSERT INTO t_f VALUES ('27', '1', '2020-01-02', '7'), ('28', '2', '2020-01-02', '5'), ('29', '0', '2019-01-02', '3');
-- accelerated
-- ask simple
SELECT a, a > 5, grouping(a, a > 5), count(*) FROM t_f GROUP BY CUBE (a, a > 5) ORDER BY a, 2, 3, 4;
