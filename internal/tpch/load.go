package tpch

import (
	"context"
	"io"

	"pgaccel/internal/pgload"
)

// Load creates the tables in the database at dsn, fills them, adds the primary keys and
// the indexes of foreign keys and runs VACUUM ANALYZE. Two connections work at a time: one
// on lineitem, one on the others. Existing tables of these names are an error. progress
// may be nil.
func Load(ctx context.Context, dsn string, scale float64, progress pgload.Progress) error {
	if err := checkScale(scale); err != nil {
		return err
	}
	var tables []pgload.Table
	for _, name := range Tables() {
		rows, err := Rows(name, scale)
		if err != nil {
			return err
		}
		tables = append(tables, pgload.Table{
			Name: name, Rows: rows, Key: pgload.KeysOf(keys(), name),
			Write: func(w io.Writer) error { return Generate(name, scale, 0, 1, w) },
		})
	}
	largest := len(tables) - 1
	return pgload.Database(ctx, dsn, Schema(), [][]pgload.Table{tables[largest:], tables[:largest]}, progress)
}
