-- timestamp(0) rounds to a value that no timestamptz has: the cast did not fail
CREATE TABLE t_f (k0 integer NOT NULL, ts0 timestamp(0), PRIMARY KEY (k0));
INSERT INTO t_f VALUES
 ('1', '294276-12-31 23:59:59.999999');
-- settings
SET TimeZone = 'UTC';
-- ask simple
SELECT max(ts0::timestamptz) FROM t_f;
