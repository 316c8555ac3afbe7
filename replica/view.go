package replica

import (
	"github.com/jackc/pgx/v5"

	"pgaccel/catalog"
)

// viewsSQL is a query for the views that read one of the tables $1, directly or by other
// views: pg_depend has what their rules name.
var viewsSQL = `WITH RECURSIVE reads(oid) AS (
  SELECT pg_catalog.unnest($1::pg_catalog.oid[])
 UNION
  SELECT w.ev_class FROM reads v JOIN pg_catalog.pg_depend d ON d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid = v.oid
   AND d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass JOIN pg_catalog.pg_rewrite w ON w.oid = d.objid AND w.ev_type = '1')
SELECT c.oid, n.nspname, c.relname, coalesce(` + catalog.FingerprintSQL("c.oid") + `, ''), pg_catalog.pg_get_viewdef(c.oid),
 CASE WHEN ` + viewOptionSQL("security_invoker") + ` THEN 0 ELSE c.relowner END, ` + viewOptionSQL("security_barrier") + `,
 ARRAY(SELECT a.attname::pg_catalog.text FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 ORDER BY a.attnum)
FROM reads v JOIN pg_catalog.pg_class c ON c.oid = v.oid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'v' AND c.relpersistence <> 't' ORDER BY c.oid`

// viewOptionSQL is whether a view has an option, whichever way its value is written.
func viewOptionSQL(name string) string {
	return `coalesce((SELECT o.option_value::pg_catalog.bool FROM pg_catalog.pg_options_to_table(c.reloptions) o WHERE o.option_name = '` + name + `'), false)`
}

// views reads the views over the tables that are chosen. Definitions are read each time: names in
// them are those of now, and change without the view.
func (r *catalogReader) views() error {
	if _, err := r.tx.Exec(r.ctx, "SELECT pg_catalog.set_config('search_path', '', true)"); err != nil {
		return err
	}
	var oids []uint32
	for _, t := range r.cat.Tables {
		oids = append(oids, t.OID)
	}
	rows, err := r.tx.Query(r.ctx, viewsSQL, oids)
	if err != nil {
		return err
	}
	var t catalog.Table
	var v catalog.View
	var names []string
	_, err = pgx.ForEachRow(rows, []any{&t.OID, &t.Schema, &t.Name, (*string)(&t.Fingerprint), &v.Definition, &v.Role, &v.Barrier, &names}, func() error {
		view, is := t, v
		view.View = &is
		for i, name := range names { // columns of a view are never dropped
			view.Columns = append(view.Columns, catalog.Column{Name: name, AttNum: int16(i + 1)})
		}
		r.cat.Views = append(r.cat.Views, &view)
		return nil
	})
	if err != nil {
		return err
	}
	// Schemas are named as of now in definitions, and as of the snapshot in all else: where two
	// have changed their names, each has tables of the other. A table that changes its name
	// changes its fingerprint.
	var torn bool
	err = r.tx.QueryRow(r.ctx, `SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace n
		WHERE n.oid::pg_catalog.regnamespace::pg_catalog.text <> pg_catalog.quote_ident(n.nspname))`).Scan(&torn)
	if err == nil && torn {
		return errTorn
	}
	return err
}
