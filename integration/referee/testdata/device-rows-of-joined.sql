-- A device finds the rows of a joined table though the aggregate is not for one: pgaccel failed within.
CREATE TABLE t_f (k0 integer NOT NULL, k1_0 char(8), PRIMARY KEY (k0));
CREATE OR REPLACE VIEW t_f_view AS SELECT * FROM t_f;
CREATE TABLE t_d0 (k1_0 char(8) NOT NULL, c0 real, PRIMARY KEY (k1_0));
CREATE OR REPLACE VIEW t_d0_view AS SELECT * FROM t_d0;
INSERT INTO t_d0 VALUES
 ('k20034  ', '-12690'),
 ('k20035  ', '-10390'),
 ('k20036  ', '10300'),
 ('k20039  ', '8381'),
 ('k20040  ', '2176'),
 ('k20041  ', '8572'),
 ('k20042  ', '-332.1'),
 ('k20043  ', NULL);
-- ask simple
SELECT bit_or(2) FROM t_f JOIN t_d0 t1 ON t1.k1_0 = t_f.k1_0;
