-- A numeric read of text beside a number, compared: the text itself was taken for it.
CREATE TABLE t_f (k integer NOT NULL, b boolean, s text, PRIMARY KEY (k));
INSERT INTO t_f VALUES
 (1, NULL, '1.00'),
 (2, true, '1.50'),
 (3, false, '');
-- ask simple
SELECT k, CASE WHEN b THEN nullif(s, '')::numeric ELSE 0 END = 1.5, coalesce(nullif(s, '')::numeric, 0) > 1, nullif(nullif(s, '')::numeric, 1) IS NULL FROM t_f ORDER BY k;
