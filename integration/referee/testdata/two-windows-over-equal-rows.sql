-- values of two windows paired otherwise: rows that are alike, ordered by one and then by the other
CREATE TABLE t_f (k int, g int NOT NULL);
ALTER TABLE t_f REPLICA IDENTITY FULL;
INSERT INTO t_f VALUES (0, 1), (3, 1), (3, 1), (8, 1), (1, 1), (2, 1), (4, 1);
-- ask simple
SELECT k, lag(k) OVER (ORDER BY k), lead(k, 2) OVER (PARTITION BY g ORDER BY k DESC) FROM t_f ORDER BY 1, 2, 3;
-- ask simple
SELECT k, row_number() OVER (ORDER BY k), row_number() OVER (ORDER BY k DESC) FROM t_f ORDER BY 1, 2, 3;
-- ask simple
SELECT k, row_number() OVER (ORDER BY k), lag(k) OVER (ORDER BY k), rank() OVER (ORDER BY k DESC) FROM t_f ORDER BY 1, 2;
