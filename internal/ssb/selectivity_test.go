package ssb

import (
	"math"
	"slices"
	"testing"
)

// published are the shares of lineorder that each query aggregates, in per cent, counted
// with the original generator at scale factor 20 (119,994,608 rows).
var published = []struct {
	query   string
	percent float64
	// What the share is made of, for the sampling error: the chosen part of the days
	// and of lineorder's own columns, of suppliers, of parts and of customers.
	own, supplier, part, customer float64
}{
	{"q1.1", 1.9873, 365. / 2406 * 3 / 11 * 24 / 50, 1, 1, 1},
	{"q1.2", 0.070237, 31. / 2406 * 3 / 11 * 10 / 50, 1, 1, 1},
	{"q1.3", 0.015770, 7. / 2406 * 3 / 11 * 10 / 50, 1, 1, 1},
	{"q2.1", 0.79940, 1, 1. / 5, 1. / 25, 1},
	{"q2.2", 0.16029, 1, 1. / 5, 8. / 1000, 1},
	{"q2.3", 0.019988, 1, 1. / 5, 1. / 1000, 1},
	{"q3.1", 3.66845, 2192. / 2406, 1. / 5, 1, 1. / 5},
	{"q3.2", 0.14496, 2192. / 2406, 1. / 25, 1, 1. / 25},
	{"q3.3", 0.0057602, 2192. / 2406, 2. / 250, 1, 2. / 250},
	{"q3.4", 0.000073337, 31. / 2406, 2. / 250, 1, 2. / 250},
	{"q4.1", 1.59285, 1, 1. / 5, 2. / 5, 1. / 5},
	{"q4.2", 0.38299, 579. / 2406, 1. / 5, 2. / 5, 1. / 5},
	{"q4.3", 0.0075295, 579. / 2406, 1. / 25, 1. / 25, 1. / 5},
}

// The queries' filters over the generated text, in plain Go.
func TestSelectivitiesAtScaleFactor1(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 6 million rows")
	}
	type where struct{ city, nation, region string }
	type made struct{ mfgr, category, brand string }
	var (
		customers = make([]where, 30_001)
		suppliers = make([]where, 2_001)
		parts     = make([]made, 200_001)
	)
	for table, rows := range map[string][]where{"customer": customers, "supplier": suppliers} {
		rowsFrom(t, table, 1, func(c [][]byte) {
			rows[number(c[0])] = where{string(c[3]), string(c[4]), string(c[5])}
		})
	}
	rowsFrom(t, "part", 1, func(c [][]byte) {
		parts[number(c[0])] = made{string(c[2]), string(c[3]), string(c[4])}
	})
	type dateRow struct {
		key, year, yearmonthnum, week int
		yearmonth                     string
	}
	dates := map[int]dateRow{}
	rowsFrom(t, "dates", 1, func(c [][]byte) {
		d := dateRow{number(c[0]), number(c[4]), number(c[5]), number(c[11]), string(c[6])}
		dates[d.key] = d
	})

	// Each filter of a dimension, once a row of the dimension and not once a row of lineorder.
	const dimensionFilters = 7
	mark := func(n int, f func(i int) [dimensionFilters]bool) [][dimensionFilters]bool {
		marks := make([][dimensionFilters]bool, n)
		for i := 1; i < n; i++ {
			marks[i] = f(i)
		}
		return marks
	}
	const america, asia, europe, us, uk = 0, 1, 2, 3, 4
	places := func(w where) (m [dimensionFilters]bool) {
		m[america], m[asia], m[europe] = w.region == "AMERICA", w.region == "ASIA", w.region == "EUROPE"
		m[us] = w.nation == "UNITED STATES"
		m[uk] = w.city == "UNITED KI1" || w.city == "UNITED KI5"
		return m
	}
	c := mark(len(customers), func(i int) [dimensionFilters]bool { return places(customers[i]) })
	s := mark(len(suppliers), func(i int) [dimensionFilters]bool { return places(suppliers[i]) })
	const category12, brands, brand2239, mfgr12, category14 = 0, 1, 2, 3, 4
	p := mark(len(parts), func(i int) (m [dimensionFilters]bool) {
		m[category12], m[category14] = parts[i].category == "MFGR#12", parts[i].category == "MFGR#14"
		m[brands] = parts[i].brand >= "MFGR#2221" && parts[i].brand <= "MFGR#2228"
		m[brand2239] = parts[i].brand == "MFGR#2239"
		m[mfgr12] = parts[i].mfgr == "MFGR#1" || parts[i].mfgr == "MFGR#2"
		return m
	})

	var counts [13]int
	rows, lastKey, lastLine := 0, 0, 0
	ordersWith := map[int]int{}    // number of lines -> orders
	var quantity, discount [51]int // rows by value
	var tax [9]int
	shipmode, priority := domain{}, domain{}
	var orderTotal, totalSoFar, orderDate, orderCustomer int
	endOrder := func() {
		if lastKey != 0 {
			ordersWith[lastLine]++
			if orderTotal != totalSoFar {
				t.Fatalf("order %d: lo_ordtotalprice %d, its lines give %d", lastKey, orderTotal, totalSoFar)
			}
		}
		totalSoFar = 0
	}
	rowsFrom(t, "lineorder", 1, func(col [][]byte) {
		rows++
		key, line := number(col[0]), number(col[1])
		custkey, partkey, suppkey := number(col[2]), number(col[3]), number(col[4])
		date, ok := dates[number(col[5])]
		q, d, x := number(col[8]), number(col[11]), number(col[14])
		if key != lastKey {
			endOrder()
			if key <= lastKey || key&31 > 7 || line != 1 {
				t.Fatalf("order %d, line %d follows order %d", key, line, lastKey)
			}
			lastKey, orderTotal, orderDate, orderCustomer = key, number(col[10]), date.key, custkey
		} else if line != lastLine+1 || date.key != orderDate || custkey != orderCustomer || number(col[10]) != orderTotal {
			t.Fatalf("order %d: line %d does not go on from line %d: %q", key, line, lastLine, col)
		}
		lastLine = line
		if !ok || date.key > 19980802 || custkey < 1 || custkey > 30_000 || custkey%3 == 0 || partkey < 1 || partkey > 200_000 || suppkey < 1 || suppkey > 2_000 {
			t.Fatalf("order %d, line %d: a key leads nowhere: %q", key, line, col)
		}
		if commit, ok := dates[number(col[15])]; !ok || commit.key <= date.key {
			t.Fatalf("order %d, line %d: lo_commitdate %s, lo_orderdate %d", key, line, col[15], date.key)
		}
		cost := 90000 + partkey/10%20001 + partkey%1000*100
		revenue := cost * q * (100 - d) / 100
		totalSoFar += revenue * (100 + x) / 100
		if number(col[9]) != cost*q || number(col[12]) != revenue || number(col[13]) != cost*6/10 {
			t.Fatalf("order %d, line %d: prices of part %d: %q", key, line, partkey, col)
		}
		quantity[q]++
		discount[d]++
		tax[x]++
		shipmode.add(col[16])
		priority.add(col[6])

		cm, sm, pm := &c[custkey], &s[suppkey], &p[partkey]
		to97, late := date.year <= 1997, date.year >= 1997
		for i, hit := range [13]bool{
			date.year == 1993 && d >= 1 && d <= 3 && q < 25,
			date.yearmonthnum == 199401 && d >= 4 && d <= 6 && q >= 26 && q <= 35,
			date.week == 6 && date.year == 1994 && d >= 5 && d <= 7 && q >= 26 && q <= 35,
			pm[category12] && sm[america],
			pm[brands] && sm[asia],
			pm[brand2239] && sm[europe],
			cm[asia] && sm[asia] && to97,
			cm[us] && sm[us] && to97,
			cm[uk] && sm[uk] && to97,
			cm[uk] && sm[uk] && date.yearmonth == "Dec1997",
			cm[america] && sm[america] && pm[mfgr12],
			cm[america] && sm[america] && pm[mfgr12] && late,
			cm[america] && sm[us] && pm[category14] && late,
		} {
			if hit {
				counts[i]++
			}
		}
	})
	endOrder()

	if want, _ := Source.Rows("lineorder", 1); int64(rows) != want {
		t.Errorf("%d rows, Rows says %d", rows, want)
	}
	even := func(name string, counts []int, sum int) {
		t.Helper()
		want := float64(sum) / float64(len(counts))
		for i, n := range counts {
			if math.Abs(float64(n)-want) > 5*math.Sqrt(want) {
				t.Errorf("%s: value %d of %d comes %d times, about %.0f expected", name, i, len(counts), n, want)
			}
		}
	}
	even("lo_quantity", quantity[1:], rows)
	even("lo_discount", discount[:11], rows)
	even("lo_tax", tax[:], rows)
	even("lines of an order", []int{ordersWith[1], ordersWith[2], ordersWith[3], ordersWith[4], ordersWith[5], ordersWith[6], ordersWith[7]}, 1_500_000)
	if len(shipmode) != 7 || len(priority) != 5 || quantity[0] != 0 {
		t.Errorf("%d ship modes, %d priorities, %d quantities of 0", len(shipmode), len(priority), quantity[0])
	}

	share := func(marks [][dimensionFilters]bool, filter int) float64 {
		n := 0
		for _, m := range marks {
			if m[filter] {
				n++
			}
		}
		return float64(n) / float64(len(marks)-1)
	}
	// Orders are of customers whose key is no multiple of 3; keys after such a multiple come twice as often.
	customerShare := func(filter int) float64 {
		n := 0
		for i, m := range c {
			if m[filter] && i%3 != 0 {
				n += 1 + i%3&1
			}
		}
		return float64(n) / float64(len(c)-1)
	}
	drawn := [13]float64{
		3: share(p, category12) * share(s, america), 4: share(p, brands) * share(s, asia), 5: share(p, brand2239) * share(s, europe),
		6: customerShare(asia) * share(s, asia), 7: customerShare(us) * share(s, us), 8: customerShare(uk) * share(s, uk), 9: customerShare(uk) * share(s, uk),
		10: customerShare(america) * share(s, america) * share(p, mfgr12), 11: customerShare(america) * share(s, america) * share(p, mfgr12),
		12: customerShare(america) * share(s, us) * share(p, category14),
	}
	for i, want := range published {
		got := float64(counts[i])
		// Against the dimensions as they were drawn, what is left to chance is which
		// rows lineorder's keys choose. The lines of an order share date and customer:
		// at most E[lines^2] / E[lines] = 5 times a Poisson count's variance.
		expected := want.own * float64(rows)
		if drawn[i] > 0 {
			expected *= drawn[i]
		}
		if bound := 5*math.Sqrt(5*expected) + 5; math.Abs(got-expected) > bound {
			t.Errorf("%s: %.0f rows, %.0f +- %.0f expected of these dimensions", want.query, got, expected, bound)
		}
		// Against the published share, the dimensions are a sample as well, and at this
		// scale factor a coarse one: 2,000 suppliers, 30,000 customers of which 20,000
		// order, 200,000 parts; at scale factor 20 these are 20, 20 and 5 times more.
		expected = want.percent / 100 * float64(rows)
		sample := func(share float64, n, times float64) float64 { return (1 - share) / share / n * (1 + 1/times) }
		variance := 5/expected*(1+1./20) + sample(want.supplier, 2_000, 20) + sample(want.part, 200_000, 5) + sample(want.customer, 18_000, 20)
		if bound := 4*expected*math.Sqrt(variance) + 5; math.Abs(got-expected) > bound {
			t.Errorf("%s: %.0f rows, %.0f +- %.0f published", want.query, got, expected, bound)
		}
		if model := want.own * want.supplier * want.part * want.customer; math.Abs(model*100/want.percent-1) > 0.25 {
			t.Errorf("%s: the model says %.6f %%, published %.6f %%", want.query, model*100, want.percent)
		}
		t.Logf("%s %9.0f rows %.6f %%, published %.6f %%", want.query, got, got/float64(rows)*100, want.percent)
	}
	if !slices.Equal([]string{published[0].query, published[12].query}, []string{Queries()[0].Name, Queries()[12].Name}) {
		t.Error("the table is not in the order of Queries")
	}
}
