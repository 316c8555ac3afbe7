-- A COALESCE of which a constant decides has that one's length.
CREATE TABLE t_f (k integer NOT NULL, c character(4), PRIMARY KEY (k));
INSERT INTO t_f VALUES
 (1, 'ab'),
 (2, NULL);
-- ask simple
SELECT coalesce('a'::char(4), (SELECT min('ab'::char(4)) FROM t_f q WHERE q.k = f.k)) FROM t_f f ORDER BY k;
