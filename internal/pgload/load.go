package pgload

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"
)

// Progress tells how far the load of a table is. rows of total are written; step says
// what is being done ("copy", "keys", "vacuum", "done"). It is called from several
// goroutines, one a table at a time.
type Progress func(table, step string, rows, total int64)

// Source is where the tables of a benchmark come from.
type Source struct {
	Schema, Keys string   // CREATE TABLE statements; those that add keys and indexes, separated by semicolons
	Tables       []string // the largest is the last
	Rows         func(table string) (int64, error)
	Write        func(table string, w io.Writer) error // in COPY's text form
}

// Load creates the tables of a source in the database at dsn, fills them, adds the keys and runs VACUUM
// ANALYZE. Two connections work at a time: one on the largest table, one on the others. Existing tables
// of these names are an error. progress may be nil.
func Load(ctx context.Context, dsn string, s Source, progress Progress) error {
	tables := make([]Table, len(s.Tables))
	for i, name := range s.Tables {
		rows, err := s.Rows(name)
		if err != nil {
			return err
		}
		tables[i] = Table{Name: name, Rows: rows, Key: KeysOf(s.Keys, name), Write: func(w io.Writer) error { return s.Write(name, w) }}
	}
	largest := len(tables) - 1
	return fill(ctx, dsn, s.Schema, [][]Table{tables[largest:], tables[:largest]}, progress)
}

// fill creates the tables of a schema in the database at dsn and fills them: each list
// of tables over a connection of its own, in order. A table is not split between
// connections, because then the order of its rows on disk would differ from run to run.
// Existing tables of these names are an error. progress may be nil.
func fill(ctx context.Context, dsn, schema string, lists [][]Table, progress Progress) error {
	conns := make([]*pgconn.PgConn, len(lists))
	for i := range conns {
		c, err := pgconn.Connect(ctx, dsn)
		if err != nil {
			return err
		}
		defer c.Close(context.WithoutCancel(ctx))
		conns[i] = c
	}
	if err := Exec(ctx, conns[0], schema); err != nil {
		return fmt.Errorf("creating the tables: %w", err)
	}
	g, ctx := errgroup.WithContext(ctx)
	for i, tables := range lists {
		g.Go(func() error {
			for _, t := range tables {
				err := Fill(ctx, conns[i], t, func(step string, rows int64) {
					if progress != nil {
						progress(t.Name, step, rows, t.Rows)
					}
				})
				if err != nil {
					return fmt.Errorf("loading %s: %w", t.Name, err)
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// KeysOf returns those of the statements that are about a table: ALTER TABLE t ... or
// CREATE INDEX ON t ...
func KeysOf(statements, table string) string {
	var of []string
	for _, s := range strings.Split(statements, ";") {
		f := strings.Fields(s)
		if len(f) > 2 && f[0] == "ALTER" && f[2] == table || len(f) > 3 && f[0] == "CREATE" && f[3] == table {
			of = append(of, strings.TrimSpace(s))
		}
	}
	return strings.Join(of, "; ")
}

// LoadInPieces is Load for tables that only others read: over so many connections at a time, each of which writes a piece
// of a table, so that their rows lie among each other; nothing is frozen or vacuumed, and all of a row of
// the largest is its key. piece writes one of pieces of a table.
func LoadInPieces(ctx context.Context, dsn string, s Source, pieces int, piece func(table string, piece, pieces int, w io.Writer) error) error {
	c, err := pgconn.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(ctx))
	if err := Exec(ctx, c, s.Schema); err != nil {
		return fmt.Errorf("creating the tables: %w", err)
	}
	g, all := errgroup.WithContext(ctx)
	g.SetLimit(pieces)
	for _, table := range slices.Backward(s.Tables) {
		for i := range pieces {
			g.Go(func() error {
				if err := copyPiece(all, dsn, table, func(w io.Writer) error { return piece(table, i, pieces, w) }); err != nil {
					return fmt.Errorf("loading %s: %w", table, err)
				}
				return nil
			})
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, table := range s.Tables[:len(s.Tables)-1] {
		if err := Exec(ctx, c, KeysOf(s.Keys, table)); err != nil {
			return fmt.Errorf("keys of %s: %w", table, err)
		}
	}
	return Exec(ctx, c, "ALTER TABLE "+s.Tables[len(s.Tables)-1]+" REPLICA IDENTITY FULL; ANALYZE")
}

func copyPiece(ctx context.Context, dsn, table string, write func(io.Writer) error) error {
	c, err := pgconn.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(ctx))
	r, w := io.Pipe()
	go func() { w.CloseWithError(write(w)) }()
	_, err = c.CopyFrom(ctx, r, "COPY "+table+" FROM STDIN")
	r.Close() // stops the generator where COPY failed
	return err
}
