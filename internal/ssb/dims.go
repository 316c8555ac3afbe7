package ssb

import (
	"fmt"
	"strconv"
	"time"

	"pgaccel/internal/tpcdata"
)

// Each table's rows are drawn from sequences of their own.
const (
	seedCustomer = 1 + iota
	seedSupplier
	seedPart
	seedLineorder
)

// salt picks one of the equally good data sets: of the first 96, the one whose 13
// selectivities at scale factor 1 are closest to the published ones. There dimensions are
// small (80 suppliers a nation), so that an arbitrary one has 0 rows for q3.4 and is off by
// a fifth elsewhere.
const salt = 74

func rowRand(table uint64, row int) tpcdata.Rand { return tpcdata.RowRand(salt, table, row) }

// place is what customers and suppliers have in common: where they are.
type place struct {
	nation int // index into tpcdata.Nations
	city   int // 0..9, the last letter of the city's name
}

func (p place) region() int { return tpcdata.Nations[p.nation].Region }

// cityName is the first 9 letters of the nation, padded with blanks, and a digit.
func (p place) cityName() string {
	return fmt.Sprintf("%-9.9s%d", tpcdata.Nations[p.nation].Name, p.city)
}

func customerAt(key int) (place, tpcdata.Rand) { return placeOf(rowRand(seedCustomer, key)) }
func supplierAt(key int) (place, tpcdata.Rand) { return placeOf(rowRand(seedSupplier, key)) }

// placeOf draws a place and returns the generator for the row's remaining columns.
func placeOf(r tpcdata.Rand) (place, tpcdata.Rand) {
	p := place{nation: r.Below(len(tpcdata.Nations))}
	p.city = r.Below(10)
	return p, r
}

// appendPlace writes address, city, nation, region and phone.
func appendPlace(b []byte, p place, r *tpcdata.Rand) []byte {
	b = tpcdata.AppendAddress(b, r, 6, 24) // 0.4 to 1.6 times 15
	b = append(b, '\t')
	b = append(b, p.cityName()...)
	b = append(b, '\t')
	b = append(b, tpcdata.Nations[p.nation].Name...)
	b = append(b, '\t')
	b = append(b, tpcdata.Regions[p.region()]...)
	return tpcdata.AppendPhone(append(b, '\t'), r, p.nation)
}

func appendCustomer(b []byte, key int) []byte {
	p, r := customerAt(key)
	b = fmt.Appendf(b, "%d\tCustomer#%09d\t", key, key)
	b = appendPlace(b, p, &r)
	b = append(b, '\t')
	b = append(b, r.Word(tpcdata.Segments)...)
	return append(b, '\n')
}

func appendSupplier(b []byte, key int) []byte {
	p, r := supplierAt(key)
	b = fmt.Appendf(b, "%d\tSupplier#%09d\t", key, key)
	b = appendPlace(b, p, &r)
	return append(b, '\n')
}

// product is a part's place in the hierarchy of manufacturers: 5 manufacturers of 5
// categories of 40 brands.
type product struct{ mfgr, category, brand int } // 1..5, 1..5, 1..40

func partAt(key int) (product, tpcdata.Rand) {
	r := rowRand(seedPart, key)
	p := product{mfgr: r.Between(1, 5)}
	p.category = r.Between(1, 5)
	p.brand = r.Between(1, 40)
	return p, r
}

func appendPart(b []byte, key int) []byte {
	p, r := partAt(key)
	// Three different colours: the part's own and the two of its name.
	var c [3]int
	tpcdata.DrawColors(&r, c[:])
	b = fmt.Appendf(b, "%d\t%s %s\tMFGR#%d\tMFGR#%d%d\tMFGR#%d%d%d\t%s\t",
		key, tpcdata.Colors[c[1]], tpcdata.Colors[c[2]], p.mfgr, p.mfgr, p.category, p.mfgr, p.category, p.brand, tpcdata.Colors[c[0]])
	b = tpcdata.AppendPartType(b, &r)
	b = fmt.Appendf(b, "\t%d\t", r.Between(1, 50))
	return append(tpcdata.AppendContainer(b, &r), '\n')
}

var firstDay = time.Date(1992, time.January, 1, 0, 0, 0, 0, time.UTC)

// day is the date n days after 1992-01-01.
func day(n int) time.Time { return firstDay.AddDate(0, 0, n) }

func dateKey(t time.Time) int { return t.Year()*10000 + int(t.Month())*100 + t.Day() }

// weekOfYear is dbgen's: days 1 to 6 are week 1, then seven days each.
func weekOfYear(t time.Time) int { return t.YearDay()/7 + 1 }

func season(m time.Month) string {
	switch {
	case m <= time.March:
		return "Winter"
	case m == time.April:
		return "Spring"
	case m <= time.August:
		return "Summer"
	case m <= time.October:
		return "Fall"
	}
	return "Christmas"
}

// holidays are dbgen's ten: Christmas Eve, New Year's Day and eight made-up ones.
var holidays = map[int]bool{1224: true, 101: true, 220: true, 420: true, 520: true, 720: true, 820: true, 920: true, 1020: true, 1120: true}

func appendDate(b []byte, n int) []byte {
	t := day(n)
	flag := func(set bool) int {
		if set {
			return 1
		}
		return 0
	}
	month := t.Month().String()
	weekday := t.Weekday()
	b = strconv.AppendInt(b, int64(dateKey(t)), 10)
	b = fmt.Appendf(b, "\t%s %d, %d\t%s\t%s\t%d\t%d\t%s%d", month, t.Day(), t.Year(), weekday, month, t.Year(),
		t.Year()*100+int(t.Month()), month[:3], t.Year())
	b = fmt.Appendf(b, "\t%d\t%d\t%d\t%d\t%d\t%s", int(weekday)+1, t.Day(), t.YearDay(), int(t.Month()), weekOfYear(t), season(t.Month()))
	return fmt.Appendf(b, "\t%d\t%d\t%d\t%d\n", flag(weekday == time.Saturday), flag(t.AddDate(0, 0, 1).Month() != t.Month()),
		flag(holidays[int(t.Month())*100+t.Day()]), flag(weekday != time.Saturday && weekday != time.Sunday))
}
