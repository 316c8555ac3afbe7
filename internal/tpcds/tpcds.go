package tpcds

import (
	"embed"
	"math"

	"pgaccel/internal/tpcdata"
)

//go:embed sql
var files embed.FS

// Source is the 24 tables. Below the least scale factor shops have customers of no state; above the largest
// keys leave 32 bits sooner or later.
var Source = tpcdata.Source{
	Name: "TPC-DS", Files: files, ScaleMin: 0.01, ScaleMax: 100,
	Tables: []string{
		"income_band", "reason", "ship_mode", "date_dim", "time_dim", "customer_demographics", "household_demographics", "customer_address", "customer",
		"item", "warehouse", "store", "call_center", "catalog_page", "web_site", "web_page", "promotion",
		"web_returns", "web_sales", "catalog_returns", "catalog_sales", "store_returns", "inventory", "store_sales",
	},
	Units: func(table string, scale float64) tpcdata.Units { return unitsOf(table, sizesAt(scale)) },
}

// sizes are the numbers of rows that a scale factor gives.
type sizes struct {
	demographics, addresses, customers, items, warehouses, stores, centers, catalogPages, sites, pages, promotions, reasons int

	tickets, catalogOrders, webOrders int
}

// itemsLeast is how many items there are at the smallest scale factors: fewer leave classes empty.
const itemsLeast = 600

func sizesAt(scale float64) sizes {
	linear := func(n float64) int { return int(math.Round(n * scale)) }
	// The specification gives sizes at 1, 10 and 100; between these they grow by the logarithm, below 1 they
	// are those of 1.
	steps := func(at1, at10, at100 float64) int {
		digits := math.Log10(max(scale, 1))
		if digits <= 1 {
			return int(at1 + (at10-at1)*digits)
		}
		return int(at10 + (at100-at10)*(digits-1))
	}
	s := sizes{
		demographics: demographicsAll, addresses: steps(50_000, 250_000, 1_000_000), customers: steps(100_000, 500_000, 2_000_000),
		items: steps(18_000, 102_000, 204_000), warehouses: steps(5, 10, 15), stores: steps(12, 102, 402), centers: steps(6, 24, 30),
		catalogPages: steps(11_718, 12_000, 20_400), sites: steps(30, 42, 48), pages: steps(60, 204, 2040),
		promotions: steps(300, 500, 1000), reasons: steps(35, 45, 55),
		tickets: linear(240_000), catalogOrders: linear(160_000), webOrders: linear(60_000),
	}
	if scale < 1 {
		s.demographics /= demographicsStep
		s.addresses, s.customers, s.items = linear(50_000), linear(100_000), max(linear(18_000), itemsLeast)
	}
	for _, n := range []*int{&s.items, &s.stores, &s.centers, &s.sites, &s.pages} {
		*n = (*n + revisionRows - 1) / revisionRows * revisionRows
	}
	return s
}

// unitsOf returns how a table is written: its units are rows; orders for sales and returns, weeks and items
// for inventory.
func unitsOf(table string, s sizes) tpcdata.Units {
	rows := func(n int, write func(w *row, key int)) tpcdata.Units {
		return tpcdata.Units{N: n, Append: func(b []byte, i int) []byte {
			w := row{Row: tpcdata.Row{B: b}}
			write(&w, i+1)
			w.Next()
			return w.B
		}}
	}
	lines := func(c *channel, returns bool) tpcdata.Units {
		o := &order{channel: c, sizes: &s}
		write := (*order).appendSales
		if returns {
			write = (*order).appendReturns
		}
		return tpcdata.Units{N: c.orders(&s),
			Append: func(b []byte, i int) []byte {
				o.make(i)
				return write(o, b)
			},
			Rows: func(i int) int { return c.rows(i, returns) },
		}
	}
	switch table {
	case "income_band":
		return rows(incomeBands, (*row).incomeBand)
	case "reason":
		return rows(s.reasons, (*row).reason)
	case "ship_mode":
		return rows(shipModes, (*row).shipMode)
	case "date_dim":
		return rows(dateRows, (*row).date)
	case "time_dim":
		return rows(daySeconds, (*row).time)
	case "customer_demographics":
		step := demographicsAll / s.demographics
		return rows(s.demographics, func(w *row, key int) { w.demographics(key, step) })
	case "household_demographics":
		return rows(households, (*row).household)
	case "customer_address":
		return rows(s.addresses, (*row).customerAddress)
	case "customer":
		return rows(s.customers, func(w *row, key int) { w.customer(&s, key) })
	case "item":
		return rows(s.items, (*row).item)
	case "warehouse":
		return rows(s.warehouses, (*row).warehouse)
	case "store":
		return rows(s.stores, (*row).store)
	case "call_center":
		return rows(s.centers, (*row).callCenter)
	case "catalog_page":
		return rows(s.catalogPages, (*row).catalogPage)
	case "web_site":
		return rows(s.sites, (*row).webSite)
	case "web_page":
		return rows(s.pages, func(w *row, key int) { w.webPage(&s, key) })
	case "promotion":
		return rows(s.promotions, func(w *row, key int) { w.promotion(&s, key) })
	case "inventory":
		ids := idsOf(s.items)
		return tpcdata.Units{N: inventoryWeeks * ids, Rows: func(int) int { return s.warehouses },
			Append: func(b []byte, i int) []byte { return appendInventory(b, i/ids, i%ids, s.warehouses) }}
	case "store_sales":
		return lines(&storeChannel, false)
	case "store_returns":
		return lines(&storeChannel, true)
	case "catalog_sales":
		return lines(&catalogChannel, false)
	case "catalog_returns":
		return lines(&catalogChannel, true)
	case "web_sales":
		return lines(&webChannel, false)
	case "web_returns":
		return lines(&webChannel, true)
	}
	return tpcdata.Units{}
}
