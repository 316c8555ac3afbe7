-- A key of grouping sets that compares another key with a date: a comparison with a timestamp was taken for it, as its constant is rounded
CREATE TABLE t_f (k0 integer NOT NULL, c5 real NOT NULL, d date NOT NULL, a integer NOT NULL, PRIMARY KEY (k0));
INSERT INTO t_f VALUES ('27', '1', '2020-01-02', '7'), ('28', '2', '2020-01-02', '5'), ('29', '0', '2019-01-02', '3');
-- ask simple
SELECT d >= timestamp '2020-01-01', count(*) FROM t_f GROUP BY ROLLUP (d, d >= date '2020-01-01');
