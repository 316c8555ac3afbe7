package ssb

import (
	"embed"
	"math"
	"strings"

	"pgaccel/internal/tpcdata"
)

//go:embed sql
var files embed.FS

// Source is the tables, dimensions first. Below the least scale factor regions without a supplier turn up;
// above the largest keys leave 32 bits sooner or later.
var Source = tpcdata.Source{
	Name: "Star Schema Benchmark", Files: files, ScaleMin: 0.01, ScaleMax: 100,
	Tables: []string{"dates", "supplier", "customer", "part", "lineorder"},
	Units:  func(table string, scale float64) tpcdata.Units { return unitsOf(table, sizesAt(scale)) },
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
		queries[i] = Query{name, strings.TrimSuffix(strings.TrimSpace(Source.Read(name+".sql")), ";")}
	}
	return queries
}

func sizesAt(scale float64) sizes {
	scaled := func(n float64) int { return int(math.Round(n * scale)) }
	s := sizes{customers: scaled(30_000), suppliers: scaled(2_000), parts: scaled(200_000), orders: scaled(1_500_000)}
	if scale >= 1 {
		s.parts = 200_000 * int(1+math.Log2(scale))
	}
	return s
}

// unitsOf returns how a table is written: its units are rows; orders for lineorder.
func unitsOf(table string, s sizes) tpcdata.Units {
	switch table {
	case "customer":
		return tpcdata.Keyed(appendCustomer, s.customers)
	case "supplier":
		return tpcdata.Keyed(appendSupplier, s.suppliers)
	case "part":
		return tpcdata.Keyed(appendPart, s.parts)
	case "dates":
		return tpcdata.Units{Append: appendDate, N: dateRows}
	case "lineorder":
		var o order
		u := tpcdata.Keyed(func(b []byte, number int) []byte {
			o.make(&s, number)
			return o.append(b)
		}, s.orders)
		u.Rows = func(i int) int {
			r := rowRand(seedLineorder, i+1)
			return lineCount(&r)
		}
		return u
	}
	return tpcdata.Units{}
}
