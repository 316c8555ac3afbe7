-- Of a derived table, too, it is not certain which condition PostgreSQL takes for a key of grouping sets.
CREATE TABLE t_f (k bigint NOT NULL, d date, PRIMARY KEY (k));
INSERT INTO t_f VALUES
 (415, '1992-01-02');
-- ask simple
SELECT (NOT (x.b::timestamp < date '2000-01-08')) FROM (SELECT DISTINCT d AS b FROM t_f) AS x GROUP BY ROLLUP (x.b::timestamp, (x.b::timestamp >= date '2000-01-08'));
