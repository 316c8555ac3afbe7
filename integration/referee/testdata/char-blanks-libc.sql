-- As char-blanks in a database of the C library's en_US.UTF-8
-- collation en_US.UTF-8
CREATE TABLE t_f (k0 integer NOT NULL, a char(4), PRIMARY KEY (k0));
INSERT INTO t_f VALUES
 ('1', 'b'),
 ('2', 'c'),
 ('3', 'd');
-- ask extended
-- with 'c '/25
SELECT count(*), sum(k0) FROM t_f WHERE a >= $1;
