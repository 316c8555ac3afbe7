-- the lower case of I is the dotless i in Turkish and its like
CREATE TABLE t_f (k0 int PRIMARY KEY, a text COLLATE "tr-x-icu");
INSERT INTO t_f VALUES
 ('1', 'RAIL'),
 ('2', 'rail');
-- ask simple
SELECT k0 FROM t_f WHERE a NOT ILIKE '%rail%';
