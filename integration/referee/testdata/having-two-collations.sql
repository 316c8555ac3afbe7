-- Text of two columns in one HAVING: both were compared in the order of the second one's collation
CREATE TABLE t_f (k0 integer NOT NULL, a text COLLATE "en-x-icu", b text COLLATE "sv-x-icu", PRIMARY KEY (k0));
INSERT INTO t_f VALUES
 ('1', 'ö', 'z'),
 ('2', 'z', 'ö');
-- accelerated
-- ask simple
SELECT k0 FROM t_f GROUP BY k0 HAVING (min(a) < 'z') = (min(b) >= 'z') ORDER BY 1;
