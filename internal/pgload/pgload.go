package pgload

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5/pgconn"
)

// Table is a table to fill. It exists and has no keys.
type Table struct {
	Name  string
	Rows  int64                 // how many rows Write writes
	Key   string                // the statements that add the primary key and other indexes
	Write func(io.Writer) error // writes the rows as COPY text
}

// Fill fills the table over one connection. It calls progress with the number of rows
// written and with what is being done: "copy", "keys", "vacuum", at last "done". Rows that
// the table has already are gone afterwards.
func Fill(ctx context.Context, c *pgconn.PgConn, t Table, progress func(step string, rows int64)) error {
	// FREEZE wants a table made or emptied in the same transaction; it saves vacuum
	// from writing every page once more.
	if err := Exec(ctx, c, "BEGIN; TRUNCATE "+t.Name); err != nil {
		return err
	}
	r, w := io.Pipe()
	go func() {
		w.CloseWithError(t.Write(&lineCounter{w: w, report: func(rows int64) { progress("copy", rows) }}))
	}()
	tag, err := c.CopyFrom(ctx, r, "COPY "+t.Name+" FROM STDIN (FREEZE)")
	r.Close() // stops the generator where COPY failed
	if err != nil {
		return err
	}
	if got := tag.RowsAffected(); got != t.Rows {
		return fmt.Errorf("the server took %d rows of %d", got, t.Rows)
	}
	progress("keys", t.Rows)
	if err := Exec(ctx, c, "COMMIT; "+t.Key); err != nil {
		return err
	}
	progress("vacuum", t.Rows)
	if err := Exec(ctx, c, "VACUUM ANALYZE "+t.Name); err != nil {
		return err
	}
	progress("done", t.Rows)
	return nil
}

// Exec runs statements and throws their results away.
func Exec(ctx context.Context, c *pgconn.PgConn, sql string) error {
	_, err := c.Exec(ctx, sql).ReadAll()
	return err
}

// lineCounter counts the rows that pass.
type lineCounter struct {
	w      io.Writer
	rows   int64
	report func(rows int64)
}

func (c *lineCounter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.rows += int64(bytes.Count(p[:n], []byte{'\n'}))
	c.report(c.rows)
	return n, err
}
