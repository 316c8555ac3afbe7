-- a key that a condition fixes: up to version 17 the server does not sort by it, though CUBE makes it null
CREATE TABLE t_f (k0 text NOT NULL, c0 char(5) COLLATE ucs_basic NOT NULL, PRIMARY KEY (k0));
INSERT INTO t_f VALUES
 ('k77', 'SHIP ');
-- ask simple
SELECT t_f.c0 FROM t_f WHERE (NOT (NOT (t_f.c0 = 'SHIP'))) GROUP BY CUBE (1) ORDER BY 1, grouping(t_f.c0) DESC NULLS LAST;
