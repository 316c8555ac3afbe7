-- PostgreSQL orders by one of two keys that are the same text under two collations, though a set lacks it
CREATE TABLE t_f (c0 text COLLATE "C.utf8");
ALTER TABLE t_f REPLICA IDENTITY FULL;
INSERT INTO t_f VALUES
 (' '),
 ('abc');
-- ask simple
SELECT t_f.c0, (t_f.c0 COLLATE "C") FROM t_f GROUP BY t_f.c0, CUBE ((t_f.c0 COLLATE "C")) ORDER BY 2;
