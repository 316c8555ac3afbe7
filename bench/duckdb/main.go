// Command duckdb runs a benchmark's queries in DuckDB, for the column beside Postgres and
// pgaccel. It is a module of its own, so that nobody who builds pgaccel builds DuckDB.
//
// A directory describes the benchmark: schema.sql creates the tables, TABLE.tsv is a
// table's rows as Postgres' COPY writes them, QUERY.sql is a query. With -dsn the tables
// are copied out of a Postgres server instead.
//
// Usage:
//
//	duckdb -dir DIR [-dsn postgres://...] [-threads 2] [-memory 8GB] [-rounds 3] [-runs 5]
//	duckdb -dir DIR -serve
//
// The first form prints one JSON object with the median and the hash of the rows of each
// query. The second prints a line of JSON about the load and the file, then reads lines of
// JSON with a query's name, text and number of runs and answers each with a line of JSON,
// rows included: the caller decides on the order of things.
package main

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/duckdb/duckdb-go/v2"
)

// loaded is what is said about the load.
type loaded struct {
	Version     string   `json:"version"`
	Threads     int      `json:"threads"`
	MemoryLimit string   `json:"memory_limit"`
	LoadSeconds float64  `json:"load_seconds"`
	FileBytes   int64    `json:"file_bytes"`
	UsedBytes   int64    `json:"used_bytes"` // of the file, without free blocks
	Storage     []stored `json:"storage"`
	Queries     []answer `json:"queries,omitempty"`
}

// answer is a query's times, and its rows in the form that hashRow gives them.
type answer struct {
	Query    string    `json:"query"`
	Rows     int       `json:"rows"`
	Hash     string    `json:"hash"`
	Text     string    `json:"text,omitempty"` // what was hashed, with -serve
	MedianMs float64   `json:"median_ms,omitempty"`
	Ms       []float64 `json:"ms"`
	Error    string    `json:"error,omitempty"`
}

func main() {
	dir := flag.String("dir", "", "directory with schema.sql, TABLE.tsv and QUERY.sql")
	dsn := flag.String("dsn", "", "copy the tables from this Postgres server instead of TABLE.tsv")
	threads := flag.Int("threads", runtime.NumCPU(), "DuckDB's threads")
	memory := flag.String("memory", "8GB", "DuckDB's memory_limit")
	rounds := flag.Int("rounds", 3, "rounds over all queries")
	runs := flag.Int("runs", 5, "measured runs a query and round, after one that is not measured")
	serve := flag.Bool("serve", false, "answer lines of standard input instead")
	flag.Parse()
	if err := run(*dir, *dsn, *threads, *memory, *rounds, *runs, *serve); err != nil {
		fmt.Fprintln(os.Stderr, "duckdb:", err)
		os.Exit(1)
	}
}

func run(dir, dsn string, threads int, memory string, rounds, runs int, serve bool) error {
	if dir == "" {
		return errors.New("-dir is missing")
	}
	ctx := context.Background()
	work, err := os.MkdirTemp("", "pgaccel-duckdb-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	file := filepath.Join(work, "bench.duckdb")
	db, err := sql.Open("duckdb", file)
	if err != nil {
		return err
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	about := loaded{Threads: threads, MemoryLimit: memory}
	settings := []string{
		fmt.Sprintf("SET threads = %d", threads), fmt.Sprintf("SET memory_limit = '%s'", memory), "SET TimeZone = 'UTC'",
		"SET default_null_order = 'nulls_last_on_asc_first_on_desc'", // Postgres'
	}
	for _, s := range settings {
		if _, err := conn.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	if err := conn.QueryRowContext(ctx, "SELECT version()").Scan(&about.Version); err != nil {
		return err
	}
	var tables []string
	if tables, about.LoadSeconds, err = load(ctx, conn, dir, dsn, work); err != nil {
		return err
	}
	if about.UsedBytes, err = usedBytes(ctx, conn); err != nil {
		return err
	}
	if about.Storage, err = storage(ctx, conn, tables); err != nil {
		return err
	}
	if st, err := os.Stat(file); err == nil {
		about.FileBytes = st.Size()
	}
	out := json.NewEncoder(os.Stdout)
	if serve {
		return serveLines(ctx, conn, about, out)
	}
	texts, err := queryTexts(dir)
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(texts))
	about.Queries = make([]answer, len(names))
	for range rounds {
		for i, name := range names {
			a, err := measure(ctx, conn, name, texts[name], runs)
			if err != nil {
				return err
			}
			a.Text = ""
			if before := about.Queries[i]; before.Query != "" && before.Hash != a.Hash {
				return fmt.Errorf("%s: the rows differ between rounds", name)
			}
			a.Ms = append(a.Ms, about.Queries[i].Ms...)
			a.MedianMs = median(a.Ms)
			about.Queries[i] = a
		}
	}
	return out.Encode(about)
}

// question is a line that -serve reads.
type question struct {
	Query string `json:"query"` // its name, for the answer
	SQL   string `json:"sql"`
	Runs  int    `json:"runs"` // measured ones
}

func serveLines(ctx context.Context, conn *sql.Conn, about loaded, out *json.Encoder) error {
	if err := out.Encode(about); err != nil {
		return err
	}
	for in := json.NewDecoder(os.Stdin); ; {
		var q question
		if err := in.Decode(&q); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("a line of standard input: %w", err)
		}
		a, err := measure(ctx, conn, q.Query, q.SQL, q.Runs)
		if err != nil {
			a = answer{Query: q.Query, Error: err.Error()}
		}
		if err := out.Encode(a); err != nil {
			return err
		}
	}
}

// queryTexts are DIR's *.sql by name, without the schema and keys.
func queryTexts(dir string) (map[string]string, error) {
	found, err := filepath.Glob(filepath.Join(dir, "*.sql"))
	if err != nil {
		return nil, err
	}
	texts := map[string]string{}
	for _, f := range found {
		name := strings.TrimSuffix(filepath.Base(f), ".sql")
		if name == "schema" || name == "keys" {
			continue
		}
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		texts[name] = string(text)
	}
	return texts, nil
}

// measure runs a query once unmeasured and runs times measured: from the call until the
// last row is read.
func measure(ctx context.Context, conn *sql.Conn, name, text string, runs int) (answer, error) {
	a := answer{Query: name}
	for i := range runs + 1 {
		start := time.Now()
		n, rows, err := query(ctx, conn, text)
		took := time.Since(start)
		if err != nil {
			return answer{}, fmt.Errorf("%s: %w", name, err)
		}
		if i == 0 {
			sum := sha256.Sum256(rows)
			a.Rows, a.Text, a.Hash = n, string(rows), fmt.Sprintf("%x", sum[:16])
			continue
		}
		if n != a.Rows {
			return answer{}, fmt.Errorf("%s: %d rows, and %d before", name, n, a.Rows)
		}
		a.Ms = append(a.Ms, float64(took.Microseconds())/1000)
	}
	return a, nil
}

// query returns the number of rows and their text: values separated by tabs, a line a
// row, \N for null.
func query(ctx context.Context, conn *sql.Conn, text string) (int, []byte, error) {
	rows, err := conn.QueryContext(ctx, text)
	if err != nil {
		return 0, nil, err
	}
	defer rows.Close()
	columns, err := rows.ColumnTypes()
	if err != nil {
		return 0, nil, err
	}
	values, into := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	var b []byte
	n := 0
	for ; rows.Next(); n++ {
		if err := rows.Scan(into...); err != nil {
			return 0, nil, err
		}
		for i, v := range values {
			if i > 0 {
				b = append(b, '\t')
			}
			b = appendValue(b, v, columns[i].DatabaseTypeName())
		}
		b = append(b, '\n')
	}
	return n, b, rows.Err()
}

// appendValue writes a value as Postgres does, but for the digits of double precision.
func appendValue(b []byte, v any, typ string) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, `\N`...)
	case string:
		return append(b, v...)
	case bool:
		return append(b, strconv.FormatBool(v)[0])
	case float64:
		return strconv.AppendFloat(b, v, 'g', -1, 64)
	case time.Time: // of a date or timestamptz, the only types with a time here
		if typ == "DATE" {
			return v.AppendFormat(b, time.DateOnly)
		}
		return v.UTC().AppendFormat(b, "2006-01-02 15:04:05.999999-07")
	case duckdb.Decimal:
		return appendDecimal(b, v)
	default: // integers
		return fmt.Append(b, v)
	}
}

// appendDecimal writes all decimals, as Postgres does; Decimal.String leaves out zeros.
func appendDecimal(b []byte, v duckdb.Decimal) []byte {
	scale := int(v.Scale)
	if v.Value.Sign() < 0 {
		b = append(b, '-')
	}
	digits := new(big.Int).Abs(v.Value).String()
	if len(digits) <= scale {
		digits = strings.Repeat("0", scale+1-len(digits)) + digits
	}
	b = append(b, digits[:len(digits)-scale]...)
	if scale > 0 {
		b = append(append(b, '.'), digits[len(digits)-scale:]...)
	}
	return b
}

func median(ms []float64) float64 {
	s := slices.Sorted(slices.Values(ms))
	if len(s) == 0 {
		return 0
	}
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
