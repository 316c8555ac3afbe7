-- An overflow of smallint under a cast to integer: the range of the wider type was checked
CREATE TABLE t_f (k0 smallint NOT NULL, c3 real, PRIMARY KEY (k0));
INSERT INTO t_f VALUES
 ('20017', '-499.6');
-- ask simple
SELECT sum(CASE WHEN (c3 IS NOT NULL) THEN (k0 + k0) ELSE 0 END) FROM t_f;
