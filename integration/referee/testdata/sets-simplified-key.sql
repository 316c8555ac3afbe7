-- Before version 18 the server makes k0 <> 58 of (k0 = 58) = false, which is no key of the grouping sets
CREATE TABLE t_f (k0 integer NOT NULL, PRIMARY KEY (k0));
INSERT INTO t_f VALUES ('20206');
-- ask simple
SELECT ((t_f.k0 = 58) = false) FROM t_f GROUP BY ROLLUP (((t_f.k0 = 58)));
