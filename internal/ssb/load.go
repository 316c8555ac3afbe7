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
	return pgload.Load(ctx, dsn, pgload.Source{
		Schema: Schema(), Keys: Keys(), Tables: Tables(),
		Rows:  func(table string) (int64, error) { return Rows(table, scale) },
		Write: func(table string, w io.Writer) error { return Generate(table, scale, 0, 1, w) },
	}, progress)
}
