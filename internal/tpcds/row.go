package tpcds

import (
	"pgaccel/internal/tpcdata"
)

// Each table's rows are drawn from sequences of their own; those of a channel's orders make its returns, too.
const (
	seedAddress = 1 + iota
	seedCustomer
	seedItem
	seedItemRevision
	seedWarehouse
	seedStore
	seedCallCenter
	seedCatalogPage
	seedWebSite
	seedWebPage
	seedPromotion
	seedReason
	seedInventory
	seedParameters
	seedDay
	seedStoreSales   // order, nulls of sales, returns
	seedCatalogSales = seedStoreSales + 3
	seedWebSales     = seedCatalogSales + 3
)

func rowRand(table uint64, row int) tpcdata.Rand { return tpcdata.RowRand(0, table, row) }

// row writes the columns of a row. Values are null where the generator says so.
type row struct {
	tpcdata.Row
	r tpcdata.Rand
}

// A foreign key of a sale is null once in nullOneIn, an attribute of a customer or an item once in missOneIn.
const nullOneIn, missOneIn = 22, 40

// key writes a foreign key or null.
func (w *row) key(v int) {
	if w.r.Below(nullOneIn) == 0 {
		w.Null()
		return
	}
	w.Number(v)
}

// miss writes null, and is true, for an attribute that is not known.
func (w *row) miss() bool {
	if w.r.Below(missOneIn) > 0 {
		return false
	}
	w.Null()
	return true
}

// words writes one of the words, or null.
func (w *row) words(words []string) {
	if !w.miss() {
		w.Text(w.r.Word(words))
	}
}

// number writes a number in lo..hi, or null.
func (w *row) number(lo, hi int) {
	if !w.miss() {
		w.Number(w.r.Between(lo, hi))
	}
}

// id writes a business key of 16 letters.
func (w *row) id(kind string, n int) { w.Padded(kind, n, 16-len(kind)) }

// flag writes Y once in oneIn, else N.
func (w *row) flag(oneIn int) { w.yes(w.r.Below(oneIn) == 0) }

func (w *row) yes(b bool) {
	if b {
		w.Text("Y")
	} else {
		w.Text("N")
	}
}

// sentence writes shortest to longest letters of random sentences.
func (w *row) sentence(shortest, longest int) {
	w.B = tpcdata.AppendText(w.B, &w.r, w.r.Between(shortest, longest))
	w.Tab()
}

// person writes a first and a last name.
func (w *row) person() {
	w.Text(w.r.Word(menNames) + " " + w.r.Word(lastNames))
}

// skewed draws from 0..n-1 the smaller the more often: a quarter of the draws are below n/16.
func skewed(r *tpcdata.Rand, n int) int {
	const unit = 1 << 20
	u := r.Below(unit)
	return u * u / unit * n / unit
}

// Of dimensions that change slowly each three business keys have revisionRows rows: one, two and three
// revisions, one after another.
const revisionRows, revisionIDs = 6, 3

// revision is what row key (from 1) of such a table is: the index of the business key, which of its
// revisions, of how many.
type revision struct{ id, number, of int }

func revisionOf(key int) revision {
	i := (key - 1) % revisionRows
	r := revision{id: (key - 1) / revisionRows * revisionIDs}
	switch {
	case i == 0:
		r.of = 1
	case i < 3:
		r.id, r.number, r.of = r.id+1, i-1, 2
	default:
		r.id, r.number, r.of = r.id+2, i-3, 3
	}
	return r
}

// idsOf is the number of business keys of so many rows.
func idsOf(rows int) int { return rows / revisionRows * revisionIDs }

// starts are the days from which revisions hold, by the number of revisions.
var starts = [][]int{1: {day(1997, 10, 27)}, 2: {day(1997, 10, 27), day(2000, 10, 27)}, 3: {day(1997, 10, 27), day(1999, 10, 28), day(2001, 10, 27)}}

// keyAt is the row of a business key that holds on a day.
func keyAt(id, day int) int {
	of := id%revisionIDs + 1
	first := id/revisionIDs*revisionRows + of*(of-1)/2 + 1
	n := of - 1
	for n > 0 && day < starts[of][n] {
		n--
	}
	return first + n
}

// revision writes the first and the last day of a revision.
func (w *row) revision(v revision) {
	w.Text(dateText(starts[v.of][v.number]))
	if v.number+1 == v.of {
		w.Null()
	} else {
		w.Text(dateText(starts[v.of][v.number+1] - 1))
	}
}
