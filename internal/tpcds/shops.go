package tpcds

import (
	"strconv"
)

func (w *row) warehouse(key int) {
	w.r = rowRand(seedWarehouse, key)
	w.Number(key)
	w.id("W", key)
	w.Text(w.r.Word(cities) + " " + strconv.Itoa(key))
	w.number(50_000, 999_999)
	w.address((key-1)%shopStates, true)
}

func (w *row) market() {
	w.Number(w.r.Between(1, 10))
}

func (w *row) store(key int) {
	v := revisionOf(key)
	id := rowRand(seedStore, -v.id) // what revisions share
	w.r = rowRand(seedStore, key)
	w.Number(key)
	w.id("S", v.id+1)
	w.revision(v)
	if w.r.Below(4) == 0 {
		w.Number(salesFirst + w.r.Below(salesDays))
	} else {
		w.Null()
	}
	w.Text(shopNames[v.id%len(shopNames)])
	w.Number(w.r.Between(200, 300))
	w.Number(w.r.Between(5_000_000, 9_999_999))
	w.Text(w.r.Word(shopHours))
	w.person()
	w.market()
	w.Text("Unknown")
	w.sentence(20, 90)
	w.person()
	w.Number(1)
	w.Text("Unknown")
	w.Number(1)
	w.Text("Unknown")
	w.address(skewed(&id, shopStates), true)
	w.Money(w.r.Between(0, 11))
}

func (w *row) callCenter(key int) {
	v := revisionOf(key)
	w.r = rowRand(seedCallCenter, key)
	w.Number(key)
	w.id("L", v.id+1)
	w.revision(v)
	w.Null() // cc_closed_date_sk
	w.Number(salesFirst - w.r.Between(100, 1000))
	w.Text(cities[v.id%len(cities)] + " Center")
	w.Text(w.r.Word(classSizes))
	w.Number(w.r.Between(100, 700))
	w.Number(w.r.Between(10_000, 40_000))
	w.Text(w.r.Word(shopHours))
	w.person()
	w.market()
	w.Text(w.r.Word(classSizes) + " markets")
	w.sentence(20, 90)
	w.person()
	division := w.r.Below(len(shopNames))
	w.Number(division + 1)
	w.Text(shopNames[division])
	company := w.r.Below(len(shopNames))
	w.Number(company + 1)
	w.Text(shopNames[company])
	w.address(v.id%shopStates, true)
	w.Money(w.r.Between(0, 12))
}

func (w *row) catalogPage(key int) {
	w.r = rowRand(seedCatalogPage, key)
	const pages = 108 // of a catalog
	kind := key / pages % 3
	days := []int{30, 91, 182}[kind]
	start := salesFirst + key/pages*17%salesDays
	w.Number(key)
	w.id("G", key)
	w.Number(start)
	w.Number(start + days)
	w.Text("DEPARTMENT")
	w.Number((key-1)/pages + 1)
	w.Number((key-1)%pages + 1)
	w.sentence(30, 95)
	w.Text([]string{"monthly", "quarterly", "bi-annual"}[kind])
}

func (w *row) webSite(key int) {
	v := revisionOf(key)
	w.r = rowRand(seedWebSite, key)
	w.Number(key)
	w.id("B", v.id+1)
	w.revision(v)
	w.Text("site_" + strconv.Itoa(v.id))
	w.Number(salesFirst - w.r.Between(100, 1000))
	w.Null() // web_close_date_sk
	w.Text("Unknown")
	w.person()
	w.market()
	w.Text(w.r.Word(classSizes) + " markets")
	w.sentence(20, 90)
	w.person()
	company := v.id % len(shopNames)
	w.Number(company + 1)
	w.Text(shopNames[company])
	w.address(v.id%shopStates, true)
	w.Money(w.r.Between(0, 12))
}

func (w *row) webPage(s *sizes, key int) {
	v := revisionOf(key)
	w.r = rowRand(seedWebPage, key)
	generated := w.r.Below(3) == 0
	w.Number(key)
	w.id("E", v.id+1)
	w.revision(v)
	w.Number(salesFirst - w.r.Between(1, 500))
	w.Number(salesFirst + salesDays - w.r.Below(100))
	w.yes(generated)
	if generated {
		w.Number(w.r.Between(1, s.customers))
	} else {
		w.Null()
	}
	w.Text("http://www.example.org/" + strconv.Itoa(v.id))
	w.Text(w.r.Word(pageTypes))
	w.Number(w.r.Between(100, 8000))
	w.Number(w.r.Between(2, 25))
	w.Number(w.r.Between(1, 7))
	w.Number(w.r.Between(0, 4))
}
