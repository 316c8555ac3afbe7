package tpch

import (
	"embed"
	"fmt"
	"io"
	"math"
	"strings"

	"pgaccel/internal/tpcdata"
)

//go:embed sql
var files embed.FS

// scaleMin and scaleMax bound the scale factor: below the first, nations without a
// supplier turn up; above the second, keys leave 32 bits sooner or later.
const (
	scaleMin = 0.01
	scaleMax = 100
)

// Tables are the names of the tables, so that loading in this order never meets a key
// without its row.
func Tables() []string {
	return []string{"region", "nation", "supplier", "part", "partsupp", "customer", "orders", "lineitem"}
}

// Schema returns the CREATE TABLE statements, without keys.
func Schema() string { return read("schema.sql") }

// keys returns the statements that add the primary keys, and those indexes of foreign keys
// without which some queries take Postgres minutes.
func keys() string { return read("keys.sql") }

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

// sizes are the key ranges that a scale factor gives.
type sizes struct{ suppliers, parts, customers, orders, clerks int }

// Where there are fewer suppliers than suppliersFew, they come in steps.
const suppliersFew, supplierStep = 250, 100

func sizesAt(scale float64) sizes {
	scaled := func(n float64) int { return int(math.Round(n * scale)) }
	s := sizes{suppliers: scaled(10_000), parts: scaled(200_000), customers: scaled(150_000), orders: scaled(1_500_000), clerks: scaled(1000)}
	if s.suppliers < suppliersFew {
		s.suppliers = (s.suppliers + supplierStep - 1) / supplierStep * supplierStep
	}
	return s
}

// Rows returns the number of rows of a table. It is exact; lineitem's are counted by
// drawing every order's number of lines, which takes some milliseconds a scale factor.
func Rows(table string, scale float64) (int64, error) {
	if err := checkScale(scale); err != nil {
		return 0, err
	}
	_, n, err := rowsOf(table, sizesAt(scale))
	switch table {
	case "partsupp":
		n *= suppliersOfPart
	case "lineitem":
		orders := n
		n = 0
		for i := range orders {
			r := rowRand(seedOrder, i+1)
			n += lineCount(&r)
		}
	}
	return int64(n), err
}

// rowsOf returns how a table's n units (rows; parts for partsupp, orders for lineitem),
// numbered from 0, are written as COPY text.
func rowsOf(table string, s sizes) (appendUnit func(b []byte, i int) []byte, n int, err error) {
	var o order
	switch table {
	case "region":
		return appendRegion, len(tpcdata.Regions), nil
	case "nation":
		return appendNation, len(tpcdata.Nations), nil
	case "supplier":
		return func(b []byte, i int) []byte { return appendSupplier(b, i+1) }, s.suppliers, nil
	case "part":
		return func(b []byte, i int) []byte { return appendPart(b, i+1) }, s.parts, nil
	case "partsupp":
		return func(b []byte, i int) []byte { return appendPartsupp(b, i+1, s.suppliers) }, s.parts, nil
	case "customer":
		return func(b []byte, i int) []byte { return appendCustomer(b, i+1) }, s.customers, nil
	case "orders":
		return func(b []byte, i int) []byte {
			o.make(&s, i+1)
			return o.append(b)
		}, s.orders, nil
	case "lineitem":
		return func(b []byte, i int) []byte {
			o.make(&s, i+1)
			return o.appendLines(b)
		}, s.orders, nil
	}
	return nil, 0, fmt.Errorf("no table %q in TPC-H: it has %s", table, strings.Join(Tables(), ", "))
}

// Generate writes one part (0..parts-1) of a table as COPY text: one row a line,
// columns separated by tabs. The parts one after another are the table, however many
// there are; a part's suppliers and an order's lines are never split.
func Generate(table string, scale float64, part, parts int, w io.Writer) error {
	if err := checkScale(scale); err != nil {
		return err
	}
	appendUnit, n, err := rowsOf(table, sizesAt(scale))
	if err != nil {
		return err
	}
	return tpcdata.Write(w, n, part, parts, appendUnit)
}
