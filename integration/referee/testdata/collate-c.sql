-- ORDER BY under COLLATE "C" of a column that has another collation: its own ranks were taken
CREATE TABLE t_f (k0 bigint NOT NULL, c6 text COLLATE "sv-x-icu", PRIMARY KEY (k0));
INSERT INTO t_f VALUES
 ('54', U&'\00a0'),
 ('57', '_%');
-- accelerated
-- ask simple
SELECT (t0.c6 COLLATE "C") FROM t_f t0 ORDER BY 1;
