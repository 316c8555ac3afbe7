package tpch

import (
	"time"

	"pgaccel/internal/tpcdata"
)

// Each table's rows are drawn from sequences of their own; those of orders make lineitem,
// too.
const (
	seedRegion = 1 + iota
	seedNation
	seedSupplier
	seedComplaint
	seedPart
	seedPartsupp
	seedCustomer
	seedOrder
	seedOrderComment
	seedLineComment
	seedParameters
)

func rowRand(table uint64, row int) tpcdata.Rand { return tpcdata.RowRand(0, table, row) }

// row writes the columns of a row.
type row struct{ tpcdata.Row }

func rowTo(b []byte) row { return row{tpcdata.Row{B: b}} }

// tagged writes names such as Supplier#000000001.
func (w *row) tagged(tag string, key int) { w.Padded(tag, key, 9) }

func (w *row) address(r *tpcdata.Rand) {
	w.B = tpcdata.AppendAddress(w.B, r, 10, 40)
	w.Tab()
}

func (w *row) phone(r *tpcdata.Rand, nation int) {
	w.B = tpcdata.AppendPhone(w.B, r, nation)
	w.Tab()
}

// comment writes shortest to longest letters of random sentences.
func (w *row) comment(r *tpcdata.Rand, shortest, longest int) {
	w.B = tpcdata.AppendText(w.B, r, r.Between(shortest, longest))
	w.Tab()
}

// Days are counted from 1992-01-01 to 1998-12-31.
const (
	dayCount   = 2557
	currentDay = 1263 // 1995-06-17, which the state of orders depends on
)

// days are their texts.
var days = func() (text [dayCount]string) {
	for i := range text {
		text[i] = time.Date(1992, time.January, 1+i, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
	}
	return text
}()
