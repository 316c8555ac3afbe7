-- Computed text over no rows: writing the result failed, so that it was forwarded
CREATE TABLE t_f (k0 bigint NOT NULL, c6 text, PRIMARY KEY (k0));
-- accelerated
-- ask simple
SELECT k0, max(c6), 'x'::text FROM t_f GROUP BY k0;
