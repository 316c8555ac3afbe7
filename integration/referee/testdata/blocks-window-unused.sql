-- A window that nothing reads is computed by the server all the same, and may fail.
CREATE TABLE t_f (k0 smallint NOT NULL, k1 char(8) NOT NULL, "C 1" date, PRIMARY KEY (k0, k1));
CREATE OR REPLACE VIEW t_f_view AS SELECT * FROM t_f;
INSERT INTO t_f VALUES
 ('20004', 'k20004  ', NULL);
-- ask simple
SELECT 1 AS b10 FROM t_f s5 GROUP BY s5."C 1" WINDOW v1 AS (), v2 AS (v1 ORDER BY min((s5.k0 * s5.k0)), s5."C 1" ASC NULLS LAST RANGE BETWEEN CURRENT ROW AND CURRENT ROW EXCLUDE CURRENT ROW);
