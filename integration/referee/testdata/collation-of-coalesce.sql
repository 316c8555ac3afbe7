-- coalesce has the collation of all its arguments, also where only the first is ever shown.
-- collation en_US.UTF-8
CREATE TABLE t_f (k0 integer NOT NULL, c6 varchar(3) COLLATE "de-x-icu", c7 varchar COLLATE "und-x-icu", PRIMARY KEY (k0));
INSERT INTO t_f VALUES
 (47, '日本', NULL);
-- ask simple
SELECT k0 FROM t_f WHERE c6 = coalesce(varchar 'Customer#1', c7);
