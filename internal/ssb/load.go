package ssb

import (
	"context"
	"io"

	"pgaccel/internal/pgload"
)

// Load creates the tables in the database at dsn, fills them, adds the primary keys and
// runs VACUUM ANALYZE. Two connections work at a time: one on lineorder, one on the
// dimensions. Existing tables of these names are an error. progress may be nil.
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
			Name: name, Rows: rows, Key: pgload.KeysOf(Keys(), name),
			Write: func(w io.Writer) error { return Generate(name, scale, 0, 1, w) },
		})
	}
	fact := len(tables) - 1
	return pgload.Database(ctx, dsn, Schema(), [][]pgload.Table{tables[fact:], tables[:fact]}, progress)
}
