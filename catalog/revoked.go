package catalog

// RevokedSQL is an SQL expression, a boolean: whether something that the gate may need has
// been taken from PUBLIC since initdb: EXECUTE on a built-in function, be it an operator's,
// SELECT on a catalog or USAGE on schema pg_catalog. Then some role's gate may fail. What
// initdb itself has taken from PUBLIC is in pg_init_privs.
const RevokedSQL = `(EXISTS (SELECT FROM pg_catalog.pg_proc f
  WHERE f.oid OPERATOR(pg_catalog.<) 16384 AND f.proacl IS NOT NULL
   AND NOT EXISTS (SELECT FROM pg_catalog.aclexplode(f.proacl) a WHERE a.grantee OPERATOR(pg_catalog.=) 0 AND a.privilege_type OPERATOR(pg_catalog.=) 'EXECUTE')
   AND NOT EXISTS (SELECT FROM pg_catalog.pg_init_privs i
    WHERE i.classoid OPERATOR(pg_catalog.=) 1255 AND i.objoid OPERATOR(pg_catalog.=) f.oid AND i.objsubid OPERATOR(pg_catalog.=) 0
     AND NOT EXISTS (SELECT FROM pg_catalog.aclexplode(i.initprivs) a WHERE a.grantee OPERATOR(pg_catalog.=) 0 AND a.privilege_type OPERATOR(pg_catalog.=) 'EXECUTE')))
 OR EXISTS (SELECT FROM pg_catalog.pg_class c
  WHERE c.oid OPERATOR(pg_catalog.=) ANY ('{pg_catalog.pg_proc,pg_catalog.pg_operator,pg_catalog.pg_cast,pg_catalog.pg_type,pg_catalog.pg_namespace,pg_catalog.pg_class,pg_catalog.pg_attribute,
    pg_catalog.pg_publication,pg_catalog.pg_publication_rel,pg_catalog.pg_inherits}'::pg_catalog.regclass[]::pg_catalog.oid[])
   AND NOT EXISTS (SELECT FROM pg_catalog.aclexplode(c.relacl) a WHERE a.grantee OPERATOR(pg_catalog.=) 0 AND a.privilege_type OPERATOR(pg_catalog.=) 'SELECT'))
 OR EXISTS (SELECT FROM pg_catalog.pg_namespace n
  WHERE n.oid OPERATOR(pg_catalog.=) 11
   AND NOT EXISTS (SELECT FROM pg_catalog.aclexplode(n.nspacl) a WHERE a.grantee OPERATOR(pg_catalog.=) 0 AND a.privilege_type OPERATOR(pg_catalog.=) 'USAGE')))`
