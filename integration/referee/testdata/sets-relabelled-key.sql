-- A cast around a key of grouping sets that is a cast itself: up to version 17 the server takes it for no key
CREATE TABLE t_f (k0 integer NOT NULL, c0 text, PRIMARY KEY (k0));
INSERT INTO t_f VALUES
 ('1', 'a');
-- ask simple
SELECT c0::varchar, count(*) FROM t_f GROUP BY CUBE (c0::varchar) HAVING (c0::varchar LIKE '_');
