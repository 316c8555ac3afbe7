-- A key of grouping sets that is a cast of another key: 1 >= real has no such cast for the server (float84ge), for us it had
CREATE TABLE t_f (k0 integer NOT NULL, c5 real NOT NULL, d date NOT NULL, a integer NOT NULL, PRIMARY KEY (k0));
INSERT INTO t_f VALUES ('27', '1', '2020-01-02', '7'), ('28', '2', '2020-01-02', '5'), ('29', '0', '2019-01-02', '3');
-- ask simple
SELECT CASE WHEN (1 >= c5) THEN 'Customer#1693'::text ELSE 'MAIL' END FROM t_f GROUP BY ROLLUP (c5, c5::float8);
