-- char(n) as text beside a constant that ends in a blank: 'c' < 'c ', the blank was dropped
CREATE TABLE t_f (k0 integer NOT NULL, a char(4) COLLATE "en-x-icu", PRIMARY KEY (k0));
INSERT INTO t_f VALUES
 ('1', 'b'),
 ('2', 'c'),
 ('3', 'd');
-- ask simple
SELECT count(*), sum(k0) FROM t_f WHERE a < 'c '::text;
