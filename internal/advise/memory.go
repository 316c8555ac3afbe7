package advise

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/replica"
	"pgaccel/vector"
)

// memory is an estimate of the column memory of a table.
type memory struct {
	Bytes int64 `json:"bytes"`
	Rows  int64 `json:"rows"`
	// Method says what it is an estimate by: all rows, a sample or types, which is a guess.
	Method string `json:"method"`
	// Sampled are the rows that were read for it.
	Sampled int64 `json:"sampled_rows"`
	// Detail says why it is by types.
	Detail string `json:"detail,omitempty"`
}

// The methods.
const (
	byAll    = "all rows"
	bySample = "sample"
	byTypes  = "types"
)

// sampleMemory bounds what a sample may take of this process' memory.
const sampleMemory = 1 << 30

// memoryOf estimates what a table's columns take once they are copied.
// Without a sample it is guessed.
func memoryOf(ctx context.Context, s *replica.Survey, t *catalog.Table, sampled bool) (memory, error) {
	pages, onServer, rows, err := s.SizeOf(ctx, t)
	if err != nil {
		return memory{}, err
	}
	guessed := memory{Rows: max(rows, 0), Method: byTypes, Detail: "no time was left for a sample"}
	if rows < 0 {
		guessed.Rows = pages * pageBytes / rowBytes(t)
	}
	guessed.Bytes = guess(t, allColumns(t), guessed.Rows, onServer)
	if !sampled {
		return guessed, nil
	}
	hidden := s.Unreadable(t)
	if !slices.ContainsFunc(t.Columns, func(c catalog.Column) bool { return c.Unsupported == "" && !slices.Contains(hidden, c.Name) }) {
		guessed.Detail = "this role may not read it"
		return guessed, nil
	}
	store := colstore.New(colstore.Options{MemoryLimit: sampleMemory})
	defer store.Close()
	sample, err := s.Sample(ctx, store, t)
	var refused *pgconn.PgError
	switch {
	case errors.As(err, &refused):
		guessed.Detail = refused.Message
		return guessed, nil
	case err != nil && (s.Conn.IsClosed() || ctx.Err() != nil):
		return memory{}, err
	case err != nil: // a value that no copy can hold, say
		guessed.Detail = err.Error()
		return guessed, nil
	}
	rel := store.NewRelation(sample.Table)
	store.Publish(rel)
	m := memory{Rows: sample.Rows, Method: bySample, Sampled: sample.Table.Rows}
	if sample.Whole {
		m.Method = byAll
	}
	var distinct map[string]float64
	if !sample.Whole { // which asks for the statistics of all tables: for each of a thousand small ones that is a while
		if distinct, err = distinctOf(ctx, s, t); errors.As(err, &refused) {
			distinct = nil // the sample has to do
		} else if err != nil {
			return memory{}, err
		}
	}
	for _, size := range store.ColumnSizes() {
		m.Bytes += scaled(&size, sample, distinct)
	}
	if len(hidden) > 0 {
		m.Method, m.Detail = byTypes, fmt.Sprintf("this role may not read %d columns", len(hidden))
		m.Bytes += guess(t, hidden, m.Rows, onServer)
	}
	return m, nil
}

func allColumns(t *catalog.Table) (names []string) {
	for _, c := range t.Columns {
		names = append(names, c.Name)
	}
	return names
}

// scaled is what one codec's segments of a column, or its dictionary, take of the whole table.
func scaled(size *colstore.ColumnSize, s *replica.Sample, distinct map[string]float64) int64 {
	if s.Whole || s.Table.Rows == 0 {
		return size.Bytes + size.NullBytes
	}
	grow := float64(s.Rows) / float64(s.Table.Rows)
	col := s.Table.Meta.Column(size.Column)
	if col < 0 || s.Table.Dicts[col] == nil {
		return int64(float64(size.Bytes+size.NullBytes) * grow)
	}
	have := float64(s.Table.Dicts[col].Len())
	want := max(have, min(max(distinct[size.Column], distinctBySample(s, col)), have*grow))
	if size.Segments == 0 { // the dictionary
		return int64(float64(size.Bytes) * want / max(have, 1))
	}
	// Codes of more strings are wider, but where strings lie as their rows do: there most bits are saved already.
	bits := 8 * float64(size.Bytes) * float64(len(s.Table.Segments)) / float64(size.Segments) / float64(s.Table.Rows)
	had := math.Log2(max(have, 2))
	wider := 1 + min(1, bits/had)*(math.Log2(max(want, 2))/had-1)
	return int64((float64(size.Bytes)*wider + float64(size.NullBytes)) * grow)
}

// distinctBySample estimates how many strings a column has, as ANALYZE does (Haas and Stokes, 1998: Duj1), by
// those that are there once in the sample.
func distinctBySample(s *replica.Sample, col int) float64 {
	n, codes := 0, make([]int32, s.Table.Dicts[col].Len())
	place := make([]int32, len(codes)) // the last segment that has it, from 1; -1 for several
	for i, seg := range s.Table.Segments {
		c := seg.Columns[col]
		values := make([]int64, c.Data.Len())
		c.Data.Decode(values, 0)
		for r, code := range values {
			if c.Nulls != nil && c.Nulls[r>>6]>>(r&63)&1 != 0 {
				continue
			}
			n++
			codes[code]++
			if p := int32(i + 1); place[code] == 0 {
				place[code] = p
			} else if place[code] != p {
				place[code] = -1
			}
		}
	}
	var once, local float64
	for i, c := range codes {
		if c == 1 {
			once++
		}
		if place[i] > 0 {
			local++
		}
	}
	d, grow := float64(len(codes)), float64(s.Rows)/float64(max(s.Table.Rows, 1))
	if n == 0 {
		return 0
	}
	if len(s.Table.Segments) > 1 && local > 0.9*d && once < d/2 {
		return d * grow // each is there in one place only: others are elsewhere
	}
	return float64(n) * d / (float64(n) - once + once/grow)
}

// distinctOf returns what the server's statistics say of how many values columns have, as far as the role may see it.
func distinctOf(ctx context.Context, s *replica.Survey, t *catalog.Table) (map[string]float64, error) {
	oids := []uint32{t.OID}
	for _, p := range t.Parts {
		oids = append(oids, p.OID)
	}
	rows, err := s.Conn.Query(ctx, `SELECT s.attname::pg_catalog.text, CASE WHEN s.n_distinct < 0 THEN -s.n_distinct * greatest(c.reltuples, 0) ELSE s.n_distinct END::pg_catalog.float8
		FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace JOIN pg_catalog.pg_stats s ON s.schemaname = n.nspname AND s.tablename = c.relname
		WHERE c.oid = ANY($1::pg_catalog.oid[])`, oids)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[string]float64{}
	for rows.Next() {
		var name string
		var n float64
		if err := rows.Scan(&name, &n); err != nil {
			return nil, err
		}
		all[name] = max(all[name], n) // of partitions the largest: they may have the same ones
	}
	return all, rows.Err()
}

const (
	// guessedShare is what a byte of a table takes in columns that nothing is known of, and guessedText the
	// bytes of a value there that has no fixed length.
	guessedShare = 0.35
	guessedText  = 24
	pageBytes    = 8192
	rowHeader    = 28 // of a row in a page
)

// widths are what a value takes of the types that have one length: in a table, and about in a column, in bytes.
var widths = map[vector.Kind][2]float64{vector.Bool: {1, 0.125}, vector.Int2: {2, 1}, vector.Int4: {4, 2.5}, vector.Date: {4, 2.5}, vector.Int8: {8, 4}, vector.Time: {8, 5},
	vector.Timestamp: {8, 4}, vector.TimestampTZ: {8, 4}, vector.Numeric: {8, 4}, vector.Float4: {4, 4}, vector.Float8: {8, 7}}

// guess is what columns take by their types alone: those without a length have a share of what the table has beside the others.
func guess(t *catalog.Table, names []string, rows, onServer int64) int64 {
	var bytes float64
	varying, of := 0, 0
	rest := float64(onServer) - rowHeader*float64(rows)
	for i := range t.Columns {
		c := &t.Columns[i]
		w, fixed := widths[c.Type.Kind]
		if fixed {
			rest -= w[0] * float64(rows)
		} else {
			varying++
		}
		switch {
		case c.Unsupported != "" || !slices.Contains(names, c.Name):
		case fixed:
			bytes += w[1] * float64(rows)
		default:
			of++
		}
	}
	if of > 0 && rest > 0 {
		bytes += guessedShare * rest * float64(of) / float64(varying)
	}
	return int64(bytes)
}

// rowBytes is about what a row takes on the server.
func rowBytes(t *catalog.Table) int64 {
	n := float64(rowHeader)
	for i := range t.Columns {
		if w, fixed := widths[t.Columns[i].Type.Kind]; fixed {
			n += w[0]
		} else {
			n += guessedText
		}
	}
	return int64(n)
}
