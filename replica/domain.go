package replica

import (
	"context"

	"github.com/jackc/pgx/v5"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// A column of a domain is held as the type that the domain is over, which is what the server describes and
// its functions and operators take. Neither the type nor its modifier can be altered; constraints concern
// none who reads.

// domain is what a domain is over, domains in between left out.
type domain struct {
	base   uint32
	typmod int32
}

// kind is how values are held, Invalid where they are not: what takes every array or enum does not take a
// domain over one alike.
func (d domain) kind() vector.Kind {
	kind := sqltype.HeldKind(d.base)
	if kind.IsArray() || kind == vector.Enum {
		return vector.Invalid
	}
	return kind
}

// domainsOf reads all domains.
func domainsOf(ctx context.Context, conn interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}) (map[uint32]domain, error) {
	rows, err := conn.Query(ctx, "SELECT y.oid, y.typbasetype, y.typtypmod FROM pg_catalog.pg_type y WHERE y.typtype = 'd'")
	if err != nil {
		return nil, err
	}
	all := map[uint32]domain{}
	var oid uint32
	var d domain
	if _, err = pgx.ForEachRow(rows, []any{&oid, &d.base, &d.typmod}, func() error {
		all[oid] = d
		return nil
	}); err != nil {
		return nil, err
	}
	for oid, d := range all {
		// A domain over another one has no modifier of its own.
		for below, is := all[d.base]; is; below, is = all[d.base] {
			d = below
		}
		all[oid] = d
	}
	return all, nil
}

// extensionTypes reads which types are extensions' that are copied.
func extensionTypes(ctx context.Context, conn *pgx.Conn) (map[uint32]string, error) {
	rows, err := conn.Query(ctx, "SELECT t.oid, t.name FROM (SELECT y.oid, "+sqltype.OpaqueExtensionSQL+" AS name FROM pg_catalog.pg_type y WHERE y.oid >= 16384 AND y.typtype = 'b') t WHERE t.name <> ''")
	if err != nil {
		return nil, err
	}
	all := map[uint32]string{}
	var oid uint32
	var name string
	_, err = pgx.ForEachRow(rows, []any{&oid, &name}, func() error {
		all[oid] = name
		return nil
	})
	return all, err
}

// readDomains reads them for the columns.
func (r *catalogReader) readDomains() (err error) {
	r.domains, err = domainsOf(r.ctx, r.tx)
	return err
}
