-- COALESCE of a constant: simplified when planned, it has the type modifier of that one; the description came from before that
CREATE TABLE t_f (k0 char(8) NOT NULL, k1 char(8) NOT NULL, PRIMARY KEY (k0, k1));
-- ask simple
SELECT coalesce(327::numeric(18,0), 1) FROM t_f;
