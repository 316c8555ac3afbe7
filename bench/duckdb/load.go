package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

var createTable = regexp.MustCompile(`(?i)CREATE TABLE (\w+)`)

// load creates the tables of DIR's schema.sql, fills them and checkpoints the file. It
// returns the tables and the seconds that DuckDB took, without those that Postgres took to
// write the rows.
func load(ctx context.Context, conn *sql.Conn, dir, dsn, work string) (tables []string, seconds float64, err error) {
	schema, err := os.ReadFile(filepath.Join(dir, "schema.sql"))
	if err != nil {
		return nil, 0, err
	}
	if _, err := conn.ExecContext(ctx, string(schema)); err != nil {
		return nil, 0, fmt.Errorf("schema.sql: %w", err)
	}
	for _, m := range createTable.FindAllSubmatch(schema, -1) {
		table := string(m[1])
		tables = append(tables, table)
		file := filepath.Join(dir, table+".tsv*") // in pieces, perhaps
		if dsn != "" {
			file = filepath.Join(work, table+".tsv")
			if err := copyOut(ctx, dsn, table, file); err != nil {
				return nil, 0, fmt.Errorf("copying %s from Postgres: %w", table, err)
			}
		}
		start := time.Now()
		_, err := conn.ExecContext(ctx, fmt.Sprintf(
			`COPY %s FROM '%s' (FORMAT csv, AUTO_DETECT false, DELIMITER '\t', HEADER false, QUOTE '', ESCAPE '', NULLSTR '\N')`,
			table, strings.ReplaceAll(file, "'", "''")))
		if err != nil {
			return nil, 0, fmt.Errorf("loading %s: %w", table, err)
		}
		seconds += time.Since(start).Seconds()
		if dsn != "" {
			os.Remove(file)
		}
	}
	start := time.Now()
	if _, err := conn.ExecContext(ctx, "CHECKPOINT"); err != nil {
		return nil, 0, err
	}
	return tables, seconds + time.Since(start).Seconds(), nil
}

// copyOut writes a table of a Postgres server as COPY text.
func copyOut(ctx context.Context, dsn, table, file string) error {
	c, err := pgconn.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if _, err := c.CopyTo(ctx, f, "COPY "+table+" TO STDOUT"); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
