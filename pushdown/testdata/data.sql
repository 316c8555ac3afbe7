-- Rows with nulls, ties, extremes and missing partners, the same each time.
INSERT INTO regions SELECT i, 'region ' || i, (ARRAY['ab', 'cd', 'ef', 'xyzt', 'q'])[i] FROM generate_series(1, 5) i;
INSERT INTO customers SELECT i, 'customer ' || (i % 17), i % 6, CASE WHEN i % 3 = 0 THEN NULL ELSE i % 2 = 0 END,
  CASE WHEN i % 5 <> 0 THEN DATE '2019-12-25' + i END, CASE WHEN i % 7 <> 0 THEN (i * 31 % 1000) / 7.0 END FROM generate_series(1, 40) i;
INSERT INTO shops SELECT i, l, l || i, CASE WHEN i % 2 = 0 THEN TIMESTAMP '2020-02-29 23:59:59.5' + i * INTERVAL '1 day' END
  FROM generate_series(1, 4) i, (VALUES ('a'), ('b'), ('é')) v(l);
INSERT INTO logs SELECT CASE WHEN i % 4 <> 0 THEN i * 7 % 50 END, CASE WHEN i % 3 <> 0 THEN 'note ' || i END FROM generate_series(1, 30) i;
INSERT INTO "Odd Name" SELECT i, CASE WHEN i % 2 = 0 THEN 'v' || i END, i / 8.0 FROM generate_series(1, 20) i;
INSERT INTO orders SELECT
  i * 1000000007::bigint,
  i * 13 % 45,
  CASE WHEN i % 4 <> 0 THEN i % 6 END,
  CASE WHEN i % 5 <> 0 THEN (ARRAY['a', 'b', 'open', 'closed', 'A ', ''])[1 + i % 6] END,
  (ARRAY['a', 'b', 'é', 'x%', 'Ab_', 'customer 3'])[1 + i * 7 % 6],
  CASE WHEN i % 3 <> 0 THEN (ARRAY['ab', 'x', 'xyzt', '', 'cd'])[1 + i % 5] END,
  (i * 7919 % 100000 - 30000) / 100.0,
  CASE WHEN i % 6 <> 0 THEN (i * 104729 % 20000 - 10000) / 10000.0 END,
  CASE WHEN i % 7 <> 0 THEN i * 37 % 60 - 10 END,
  CASE WHEN i % 8 <> 0 THEN i * 11 % 40 - 5 END,
  CASE WHEN i % 9 = 0 THEN NULL WHEN i = 1 THEN 9223372036854775807 WHEN i = 2 THEN -9223372036854775808 ELSE i * 123456789012 - 9000000000000 END,
  CASE WHEN i % 10 <> 0 THEN (i * 17 % 100) / 10.0 - 2.5 END,
  CASE WHEN i % 11 <> 0 THEN (i * 29 % 1000) / 64.0 - 3 END,
  CASE WHEN i % 4 <> 1 THEN i % 3 = 0 END,
  DATE '2023-12-20' + i % 400,
  CASE WHEN i % 5 <> 2 THEN TIMESTAMP '2023-12-31 22:30:15.25' + (i * 8.75) * INTERVAL '1 hour' END,
  CASE WHEN i % 6 <> 3 THEN TIMESTAMPTZ '2023-12-31 21:00:00+00' + (i * 3.5) * INTERVAL '1 hour' END,
  CASE WHEN i % 7 <> 4 THEN TIME '00:00' + (i * 0.125 % 24) * INTERVAL '1 hour' END,
  'pg_class',
  CASE WHEN i % 6 <> 5 THEN (ARRAY['{"a": 1, "b": {"c": "x"}}', '{"a": "é", "seats": 7, "k": null}', '[1, {"a": 1.0}]', '"s"', '{}', '{"a": [1, 2.50], "x": 1}'])[1 + i * 5 % 6]::jsonb END
FROM generate_series(1, 300) i;
-- Groups: 1 and 2 ordinary, 3 one row, 4 nulls, 5 not a number, 6 infinity, 7 both infinities, 8 zeros of both signs,
-- 9 negative zeros, 10 and 11 too large to add up, 12 the smallest, 13 equal values, 14 infinity and not a number.
INSERT INTO floats SELECT i, 1 + i % 2, CASE WHEN i % 5 <> 0 THEN (i * 29 % 1000) / 7.0 - 60 END, CASE WHEN i % 6 <> 0 THEN (i * 31 % 1000) / 64.0 - 3 END
  FROM generate_series(1, 60) i;
INSERT INTO floats VALUES (101, 3, 0.1, 0.1), (102, 4, NULL, NULL), (103, 4, NULL, NULL), (104, 5, 'NaN', 'NaN'), (105, 5, 1, 1), (106, 5, -7.5, -7.5),
  (107, 6, 'Infinity', 'Infinity'), (108, 6, 1, 1), (109, 6, -3, -3), (110, 7, 'Infinity', 'Infinity'), (111, 7, '-Infinity', '-Infinity'), (112, 7, 4, 4),
  (113, 8, 0, 0), (114, 8, '-0', '-0'), (115, 9, '-0', '-0'), (116, 9, '-0', '-0'), (117, 9, NULL, NULL), (118, 10, 1.5e308, 3e38), (119, 10, 1.5e308, 3e38),
  (120, 11, 1e200, 1e20), (121, 11, -1e200, -1e20), (122, 12, 5e-324, 1e-45), (123, 12, 5e-324, 1e-45), (124, 13, 0.1, 0.1), (125, 13, 0.1, 0.1), (126, 13, 0.1, 0.1),
  (127, 14, 'Infinity', 'Infinity'), (128, 14, 'NaN', 'NaN');
INSERT INTO hierarchy SELECT CASE WHEN i % 11 <> 0 THEN 'p' || i % 4 END, CASE WHEN i % 7 <> 0 THEN i * 5 % 23 END, CASE WHEN i % 5 <> 0 THEN i / 64.0 END,
  CASE WHEN i % 3 <> 0 THEN DATE '2024-01-01' + i END FROM generate_series(1, 60) i;
ANALYZE;
