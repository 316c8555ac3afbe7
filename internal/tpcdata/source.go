package tpcdata

import (
	"context"
	"embed"
	"fmt"
	"io"
	"strings"

	"pgaccel/internal/pgload"
)

// Source is the tables of a benchmark at any scale factor.
type Source struct {
	Name               string
	Files              embed.FS // sql/schema.sql, sql/keys.sql and the queries
	ScaleMin, ScaleMax float64
	Tables             []string // in an order in which no key is met without its row; the largest is the last

	Units func(table string, scale float64) Units // of a table; zero where there is none of the name
}

// Units are what a table is written of: rows, or orders with their lines.
type Units struct {
	N      int
	Append func(b []byte, i int) []byte // writes unit i (0..N-1) as COPY text
	Rows   func(i int) int              // how many rows it has; nil where each has one
}

// Keyed are n rows, or orders, whose keys count from 1.
func Keyed(appendRow func(b []byte, key int) []byte, n int) Units {
	return Units{Append: func(b []byte, i int) []byte { return appendRow(b, i+1) }, N: n}
}

// Read returns one of the files.
func (s Source) Read(name string) string {
	text, err := s.Files.ReadFile("sql/" + name)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return string(text)
}

// Schema returns the CREATE TABLE statements, without keys.
func (s Source) Schema() string { return s.Read("schema.sql") }

// Keys returns the statements that add primary keys and indexes.
func (s Source) Keys() string { return s.Read("keys.sql") }

func (s Source) units(table string, scale float64) (Units, error) {
	if !(scale >= s.ScaleMin && scale <= s.ScaleMax) {
		return Units{}, fmt.Errorf("scale factor %v: use %v to %v", scale, s.ScaleMin, s.ScaleMax)
	}
	u := s.Units(table, scale)
	if u.Append == nil {
		return Units{}, fmt.Errorf("no table %q in %s: it has %s", table, s.Name, strings.Join(s.Tables, ", "))
	}
	return u, nil
}

// Rows returns the number of rows of a table. It is exact; the lines of orders are counted by drawing
// their numbers, which takes some milliseconds a scale factor.
func (s Source) Rows(table string, scale float64) (int64, error) {
	u, err := s.units(table, scale)
	if err != nil || u.Rows == nil {
		return int64(u.N), err
	}
	n := 0
	for i := range u.N {
		n += u.Rows(i)
	}
	return int64(n), nil
}

// Generate writes one part (0..parts-1) of a table as COPY text: one row a line, columns separated by
// tabs. The parts one after another are the table, however many there are; a unit is never split.
func (s Source) Generate(table string, scale float64, part, parts int, w io.Writer) error {
	u, err := s.units(table, scale)
	if err != nil {
		return err
	}
	return write(w, u.N, part, parts, u.Append)
}

// Load creates the tables in the database at dsn, fills them, adds the keys and runs VACUUM ANALYZE. Two
// connections work at a time: one on the largest table, one on the others. Existing tables of these names
// are an error. progress may be nil.
func (s Source) Load(ctx context.Context, dsn string, scale float64, progress pgload.Progress) error {
	if _, err := s.units(s.Tables[0], scale); err != nil {
		return err
	}
	return pgload.Load(ctx, dsn, pgload.Source{
		Schema: s.Schema(), Keys: s.Keys(), Tables: s.Tables,
		Rows:  func(table string) (int64, error) { return s.Rows(table, scale) },
		Write: func(table string, w io.Writer) error { return s.Generate(table, scale, 0, 1, w) },
	}, progress)
}

// LoadInPieces creates the tables in the database at dsn and fills them in pieces (see pgload): for what only others read.
func (s Source) LoadInPieces(ctx context.Context, dsn string, scale float64, pieces int) error {
	if _, err := s.units(s.Tables[0], scale); err != nil {
		return err
	}
	return pgload.LoadInPieces(ctx, dsn, pgload.Source{Schema: s.Schema(), Keys: s.Keys(), Tables: s.Tables}, pieces,
		func(table string, piece, pieces int, w io.Writer) error {
			return s.Generate(table, scale, piece, pieces, w)
		})
}

// Fill puts values, a name and a value in turns, into a text that has [NAME] in their places.
func Fill(template string, values []string) string {
	pairs := make([]string, len(values))
	for i, v := range values {
		if pairs[i] = v; i%2 == 0 {
			pairs[i] = "[" + v + "]"
		}
	}
	return strings.NewReplacer(pairs...).Replace(template)
}

// Different draws n different numbers of 0..of-1.
func Different(r *Rand, n, of int) []int {
	all := make([]int, of)
	for i := range all {
		all[i] = i
	}
	for i := range n {
		k := r.Between(i, of-1)
		all[i], all[k] = all[k], all[i]
	}
	return all[:n]
}
