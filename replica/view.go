package replica

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/catalog"
)

// viewsSQL is a query for the views that read one of the tables $1, directly or by other
// views: pg_depend has what their rules name. It waits for no lock.
var viewsSQL = `WITH RECURSIVE reads(oid) AS (
  SELECT pg_catalog.unnest($1::pg_catalog.oid[])
 UNION
  SELECT w.ev_class FROM reads v JOIN pg_catalog.pg_depend d ON d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid = v.oid
   AND d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass JOIN pg_catalog.pg_rewrite w ON w.oid = d.objid AND w.ev_type = '1')
SELECT c.oid, n.nspname, c.relname, coalesce(` + catalog.FingerprintSQL("c.oid") + `, ''),
 CASE WHEN ` + viewOptionSQL("security_invoker") + ` THEN 0 ELSE c.relowner END, ` + viewOptionSQL("security_barrier") + `,
 ARRAY(SELECT a.attname::pg_catalog.text FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 ORDER BY a.attnum)
FROM reads v JOIN pg_catalog.pg_class c ON c.oid = v.oid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'v' AND c.relpersistence <> 't' ORDER BY c.oid`

// viewOptionSQL is whether a view has an option, whichever way its value is written.
func viewOptionSQL(name string) string {
	return `coalesce((SELECT o.option_value::pg_catalog.bool FROM pg_catalog.pg_options_to_table(c.reloptions) o WHERE o.option_name = '` + name + `'), false)`
}

// viewsWait bounds the wait for a lock on a view, or on what it reads, in milliseconds: whoever
// has one is changing a definition, or rewrites a table.
const viewsWait = 50

// views reads the views over the tables that are chosen. Names in definitions are those of now, and
// change without the view: definitions are taken from known, which may be nil, only where neither
// a view nor a table is another than it was. Views of which one cannot be read for a lock are left out.
func (r *catalogReader) views(known *catalog.Catalog) error {
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
	var views []*catalog.Table
	_, err = pgx.ForEachRow(rows, []any{&t.OID, &t.Schema, &t.Name, (*string)(&t.Fingerprint), &v.Role, &v.Barrier, &names}, func() error {
		view, is := t, v
		view.View = &is
		for i, name := range names { // columns of a view are never dropped
			view.Columns = append(view.Columns, catalog.Column{Name: name, AttNum: int16(i + 1)})
		}
		views = append(views, &view)
		return nil
	})
	switch {
	case err != nil || len(views) == 0:
		return err
	case known != nil && slices.EqualFunc(known.Tables, r.cat.Tables, unchanged) && slices.EqualFunc(known.Views, views, unchanged):
		r.cat.Views = known.Views
		return nil
	}
	return r.definitions(views)
}

// unchanged reports whether a table or view has the definition and the name that it had.
func unchanged(a, b *catalog.Table) bool {
	return a.OID == b.OID && a.Fingerprint == b.Fingerprint && a.Schema == b.Schema && a.Name == b.Name
}

// definitions reads what views select. pg_get_viewdef takes locks on all that a view names.
func (r *catalogReader) definitions(views []*catalog.Table) error {
	if _, err := r.tx.Exec(r.ctx, fmt.Sprintf("SAVEPOINT views; SET LOCAL search_path = ''; SET LOCAL lock_timeout = %d", viewsWait)); err != nil {
		return err
	}
	var oids []uint32
	for _, t := range views {
		oids = append(oids, t.OID)
	}
	rows, err := r.tx.Query(r.ctx, `SELECT pg_catalog.pg_get_viewdef(v.oid) FROM pg_catalog.unnest($1::pg_catalog.oid[]) WITH ORDINALITY v(oid, i) ORDER BY v.i`, oids)
	if err != nil {
		return err
	}
	texts, err := pgx.CollectRows(rows, pgx.RowTo[*string])
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		// 55P03: a lock; XX000: a view that has gone meanwhile, or that reads what has.
		_, err = r.tx.Exec(r.ctx, "ROLLBACK TO SAVEPOINT views")
		return err
	} else if err != nil {
		return err
	}
	// Schemas are named as of now in definitions, and as of the snapshot in all else: where two
	// have changed their names, each has tables of the other. A table that changes its name
	// changes its fingerprint.
	var torn bool
	if err := r.tx.QueryRow(r.ctx, `SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace n
		WHERE n.oid::pg_catalog.regnamespace::pg_catalog.text <> pg_catalog.quote_ident(n.nspname))`).Scan(&torn); err != nil || torn {
		return cmp.Or(err, errTorn)
	}
	for i, t := range views {
		if texts[i] != nil {
			t.View.Definition = *texts[i]
			r.cat.Views = append(r.cat.Views, t)
		}
	}
	return nil
}
