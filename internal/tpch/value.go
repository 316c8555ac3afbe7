package tpch

import (
	"strconv"
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
type row struct{ b []byte }

func (w *row) tab()  { w.b = append(w.b, '\t') }
func (w *row) next() { w.b[len(w.b)-1] = '\n' } // in the last tab's place

func (w *row) number(v int) {
	w.b = strconv.AppendInt(w.b, int64(v), 10)
	w.tab()
}

func (w *row) text(s string) {
	w.b = append(w.b, s...)
	w.tab()
}

// tagged writes names such as Supplier#000000001.
func (w *row) tagged(tag string, key int) {
	w.b = append(w.b, tag...)
	for unit := 100_000_000; unit > 0; unit /= 10 {
		w.b = append(w.b, byte('0'+key/unit%10))
	}
	w.tab()
}

// money writes hundredths as numeric(15,2) is written.
func (w *row) money(cents int) {
	if cents < 0 {
		w.b = append(w.b, '-')
		cents = -cents
	}
	w.b = strconv.AppendInt(w.b, int64(cents/100), 10)
	w.b = append(w.b, '.', byte('0'+cents/10%10), byte('0'+cents%10))
	w.tab()
}

func (w *row) address(r *tpcdata.Rand) {
	w.b = tpcdata.AppendAddress(w.b, r, 10, 40)
	w.tab()
}

func (w *row) phone(r *tpcdata.Rand, nation int) {
	w.b = tpcdata.AppendPhone(w.b, r, nation)
	w.tab()
}

// comment writes shortest to longest letters of random sentences.
func (w *row) comment(r *tpcdata.Rand, shortest, longest int) {
	w.b = appendText(w.b, r, r.Between(shortest, longest))
	w.tab()
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
