-- A CASE of which a constant decides has the length of the arm that is left.
CREATE TABLE t_f (k integer NOT NULL, c character(4), PRIMARY KEY (k));
INSERT INTO t_f VALUES
 (1, 'ab'),
 (2, NULL);
-- ask simple
SELECT DISTINCT CASE WHEN 'a' ILIKE '%B' THEN (SELECT min('ab'::char(4)) FROM t_f q WHERE q.k = f.k) ELSE 'ab'::char(4) END FROM t_f f;
