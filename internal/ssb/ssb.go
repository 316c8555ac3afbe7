package ssb

import (
	"embed"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"pgaccel/internal/tpcdata"
)

//go:embed sql
var files embed.FS

// scaleMin and scaleMax bound the scale factor: below the first, regions without a
// supplier turn up; above the second, keys leave 32 bits sooner or later.
const (
	scaleMin = 0.01
	scaleMax = 100
)

// Tables are the names of the tables, dimensions first, so that loading in this order
// never meets a key without its row.
func Tables() []string {
	return []string{"dates", "supplier", "customer", "part", "lineorder"}
}

// Query is one of the 13 queries.
type Query struct {
	Name string // q1.1 .. q4.3
	SQL  string // without the semicolon
}

// Queries returns the 13 queries in the benchmark's order.
func Queries() []Query {
	names := []string{"q1.1", "q1.2", "q1.3", "q2.1", "q2.2", "q2.3", "q3.1", "q3.2", "q3.3", "q3.4", "q4.1", "q4.2", "q4.3"}
	queries := make([]Query, len(names))
	for i, name := range names {
		queries[i] = Query{name, strings.TrimSuffix(strings.TrimSpace(read(name+".sql")), ";")}
	}
	return queries
}

// Schema returns the CREATE TABLE statements, without keys.
func Schema() string { return read("schema.sql") }

// Keys returns the statements that add the primary keys, one a table.
func Keys() string { return read("keys.sql") }

func read(name string) string {
	text, err := files.ReadFile("sql/" + name)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return string(text)
}

func checkScale(scale float64) error {
	if !(scale >= scaleMin && scale <= scaleMax) {
		return fmt.Errorf("scale factor %v: use %v to %v", scale, scaleMin, scaleMax)
	}
	return nil
}

func sizesAt(scale float64) sizes {
	scaled := func(n float64) int { return int(math.Round(n * scale)) }
	s := sizes{customers: scaled(30_000), suppliers: scaled(2_000), parts: scaled(200_000), orders: scaled(1_500_000)}
	if scale >= 1 {
		s.parts = 200_000 * int(1+math.Log2(scale))
	}
	return s
}

// Rows returns the number of rows of a table. It is exact; lineorder's are counted by
// drawing every order's number of lines, which takes some milliseconds a scale factor.
func Rows(table string, scale float64) (int64, error) {
	if err := checkScale(scale); err != nil {
		return 0, err
	}
	if table != "lineorder" {
		_, n, err := rowsOf(table, sizesAt(scale))
		return int64(n), err
	}
	rows := 0
	for i := range sizesAt(scale).orders {
		r := rowRand(seedLineorder, i+1)
		rows += lineCount(&r)
	}
	return int64(rows), nil
}

// rowsOf returns how a table's n units (rows; orders for lineorder), numbered from 0,
// are written as COPY text.
func rowsOf(table string, s sizes) (appendRow func(b []byte, i int) []byte, n int, err error) {
	switch table {
	case "customer":
		return func(b []byte, i int) []byte { return appendCustomer(b, i+1) }, s.customers, nil
	case "supplier":
		return func(b []byte, i int) []byte { return appendSupplier(b, i+1) }, s.suppliers, nil
	case "part":
		return func(b []byte, i int) []byte { return appendPart(b, i+1) }, s.parts, nil
	case "dates":
		return appendDate, dateRows, nil
	case "lineorder":
		var o order
		return func(b []byte, i int) []byte {
			o.make(&s, i+1)
			return o.append(b)
		}, s.orders, nil
	}
	return nil, 0, fmt.Errorf("no table %q in the Star Schema Benchmark: it has %s", table, strings.Join(slices.Sorted(slices.Values(Tables())), ", "))
}

// Generate writes one part (0..parts-1) of a table as COPY text: one row a line,
// columns separated by tabs. The parts one after another are the table, however many
// there are; an order's lines are never split.
func Generate(table string, scale float64, part, parts int, w io.Writer) error {
	if err := checkScale(scale); err != nil {
		return err
	}
	appendRow, n, err := rowsOf(table, sizesAt(scale))
	if err != nil {
		return err
	}
	return tpcdata.Write(w, n, part, parts, appendRow)
}
