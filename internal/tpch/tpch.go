package tpch

import (
	"embed"
	"math"

	"pgaccel/internal/tpcdata"
)

//go:embed sql
var files embed.FS

// Source is the tables. Besides the primary keys there are those indexes of foreign keys without which some
// queries take Postgres minutes. Below the least scale factor nations without a supplier turn up; above the
// largest keys leave 32 bits sooner or later.
var Source = tpcdata.Source{
	Name: "TPC-H", Files: files, ScaleMin: 0.01, ScaleMax: 100,
	Tables: []string{"region", "nation", "supplier", "part", "partsupp", "customer", "orders", "lineitem"},
	Units:  func(table string, scale float64) tpcdata.Units { return unitsOf(table, sizesAt(scale)) },
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

// unitsOf returns how a table is written: its units are rows; parts for partsupp, orders for lineitem.
func unitsOf(table string, s sizes) tpcdata.Units {
	var o order
	switch table {
	case "region":
		return tpcdata.Units{Append: appendRegion, N: len(tpcdata.Regions)}
	case "nation":
		return tpcdata.Units{Append: appendNation, N: len(tpcdata.Nations)}
	case "supplier":
		return tpcdata.Keyed(appendSupplier, s.suppliers)
	case "part":
		return tpcdata.Keyed(appendPart, s.parts)
	case "partsupp":
		u := tpcdata.Keyed(func(b []byte, part int) []byte { return appendPartsupp(b, part, s.suppliers) }, s.parts)
		u.Rows = func(int) int { return suppliersOfPart }
		return u
	case "customer":
		return tpcdata.Keyed(appendCustomer, s.customers)
	case "orders":
		return tpcdata.Keyed(func(b []byte, number int) []byte {
			o.make(&s, number)
			return o.append(b)
		}, s.orders)
	case "lineitem":
		u := tpcdata.Keyed(func(b []byte, number int) []byte {
			o.make(&s, number)
			return o.appendLines(b)
		}, s.orders)
		u.Rows = func(i int) int {
			r := rowRand(seedOrder, i+1)
			return lineCount(&r)
		}
		return u
	}
	return tpcdata.Units{}
}
