package events

import (
	"context"
	"io"

	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/internal/pgload"
)

// Load creates the table in the database at dsn, fills it, adds the primary key and runs
// VACUUM ANALYZE. progress is told what is done as pgload.Fill tells it. An existing table
// of this name is an error.
func Load(ctx context.Context, dsn string, rows int64, progress func(step string, rows int64)) error {
	c, err := pgconn.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(ctx))
	if err := pgload.Exec(ctx, c, Schema()); err != nil {
		return err
	}
	return pgload.Fill(ctx, c, pgload.Table{
		Name: "events", Rows: rows, Key: Key(),
		Write: func(w io.Writer) error { return Generate(ctx, rows, w) },
	}, progress)
}
