-- A constant that fails and that no row needs: PostgreSQL computes it when it plans
CREATE TABLE t_f (k0 integer NOT NULL, a integer, PRIMARY KEY (k0));
INSERT INTO t_f VALUES
 ('1', '5');
-- ask simple
SELECT CASE WHEN count(*) > 100 THEN 1/0 ELSE 1 END, sum(coalesce(k0, 1/0)) FROM t_f WHERE (NULL = 1/0) IS NULL;
