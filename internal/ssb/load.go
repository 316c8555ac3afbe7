package ssb

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"

	"pgaccel/internal/pgload"
)

// Progress tells how far the load of a table is. rows of total are written; step says
// what is being done ("copy", "keys", "vacuum"). It is called from several goroutines,
// one a table at a time.
type Progress func(table, step string, rows, total int64)

// Load creates the tables in the database at dsn, fills them, adds the primary keys and
// runs VACUUM ANALYZE. Two connections work at a time: one on lineorder, one on the
// dimensions. lineorder is not split between them, because then the order of its rows on
// disk would differ from run to run. Existing tables of these names are an error.
// progress may be nil.
func Load(ctx context.Context, dsn string, scale float64, progress Progress) error {
	if progress == nil {
		progress = func(string, string, int64, int64) {}
	}
	if err := checkScale(scale); err != nil {
		return err
	}
	tables := Tables()
	var conns [2]*pgconn.PgConn
	for i := range conns {
		c, err := pgconn.Connect(ctx, dsn)
		if err != nil {
			return err
		}
		defer c.Close(context.WithoutCancel(ctx))
		conns[i] = c
	}
	if err := pgload.Exec(ctx, conns[0], Schema()); err != nil {
		return fmt.Errorf("creating the tables: %w", err)
	}
	g, ctx := errgroup.WithContext(ctx)
	for i, work := range [2][]string{{"lineorder"}, tables[:len(tables)-1]} {
		g.Go(func() error {
			for _, table := range work {
				if err := loadTable(ctx, conns[i], table, scale, progress); err != nil {
					return fmt.Errorf("loading %s: %w", table, err)
				}
			}
			return nil
		})
	}
	return g.Wait()
}

func loadTable(ctx context.Context, c *pgconn.PgConn, table string, scale float64, progress Progress) error {
	total, err := Rows(table, scale)
	if err != nil {
		return err
	}
	return pgload.Fill(ctx, c, pgload.Table{
		Name: table, Rows: total, Key: keyOf(table),
		Write: func(w io.Writer) error { return Generate(table, scale, 0, 1, w) },
	}, func(step string, rows int64) { progress(table, step, rows, total) })
}

// keyOf returns the statement of keys.sql that is about a table.
func keyOf(table string) string {
	for _, s := range strings.Split(Keys(), ";") {
		if f := strings.Fields(s); len(f) > 2 && f[2] == table {
			return strings.TrimSpace(s)
		}
	}
	panic("BUG: keys.sql has no key of " + table)
}
