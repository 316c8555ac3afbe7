-- A part of a constant document that no row has: the string that stood for it was read as a document.
CREATE TABLE t_f (k integer NOT NULL, d jsonb, s text, PRIMARY KEY (k));
INSERT INTO t_f VALUES
 (1, NULL, 'x'),
 (2, '[1, 2, 3, 4]', 'y');
-- ask simple
SELECT k, coalesce(d, '{"a": 1}'::jsonb -> s) -> 3, ('{"a": 1}'::jsonb -> s) -> 0 FROM t_f ORDER BY k;
