package tpch

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgaccel/internal/tpcdata"
)

// domain counts a column's different values.
type domain map[string]int

func (d domain) add(b []byte) { d[string(b)]++ }

// uniform is an error unless a column has n values that are about equally frequent.
func (d domain) uniform(t *testing.T, name string, n int) {
	t.Helper()
	rows := 0
	for _, k := range d {
		rows += k
	}
	if len(d) != n {
		t.Errorf("%s: %d different values, want %d", name, len(d), n)
	}
	for v, k := range d {
		if want := float64(rows) / float64(n); math.Abs(float64(k)-want) > 5*math.Sqrt(want) {
			t.Errorf("%s: %q has %d of %d rows", name, v, k, rows)
		}
	}
}

// like is LIKE with one % before, between and after words.
func like(text []byte, words ...string) bool {
	for _, w := range words {
		_, rest, found := bytes.Cut(text, []byte(w))
		if !found {
			return false
		}
		text = rest
	}
	return true
}

func TestSuppliers(t *testing.T) {
	nation := domain{}
	key, complaints, recommends := 0, 0, 0
	rowsFrom(t, "supplier", 2, func(c [][]byte) {
		if key++; number(c[0]) != key || string(c[1]) != fmt.Sprintf("Supplier#%09d", key) {
			t.Fatalf("row %d is %q", key, c)
		}
		nation.add(c[3])
		if number(c[4][:2]) != 10+number(c[3]) || len(c[4]) != 15 {
			t.Fatalf("phone %q of nation %s", c[4], c[3])
		}
		if n := number(c[5]); n < balanceMin || n > balanceMax {
			t.Fatalf("balance %s", c[5])
		}
		if like(c[6], "Customer", "Complaints") {
			complaints++
		}
		if like(c[6], "Customer", "Recommends") {
			recommends++
		}
		if n := len(c[6]); n < 25 || n > 100 {
			t.Fatalf("comment of %d letters", n)
		}
	})
	nation.uniform(t, "nations", 25)
	if complaints != 10 || recommends != 10 {
		t.Errorf("%d complaints and %d recommendations, want 10 each", complaints, recommends)
	}
}

func TestParts(t *testing.T) {
	const scale = 0.1
	maker, brand, typ, size, container, color := domain{}, domain{}, domain{}, domain{}, domain{}, domain{}
	key := 0
	rowsFrom(t, "part", scale, func(c [][]byte) {
		if key++; number(c[0]) != key {
			t.Fatalf("row %d is %q", key, c)
		}
		words := bytes.Fields(c[1])
		for i, w := range words {
			color.add(w)
			if slices.ContainsFunc(words[:i], func(o []byte) bool { return bytes.Equal(o, w) }) {
				t.Fatalf("name %q", c[1])
			}
		}
		maker.add(c[2])
		brand.add(c[3])
		if c[2][len("Manufacturer#")] != c[3][len("Brand#")] || len(words) != 5 {
			t.Fatalf("row %q", c)
		}
		typ.add(c[4])
		size.add(c[5])
		container.add(c[6])
		if number(c[7]) != 90000+key/10%20001+100*(key%1000) {
			t.Fatalf("part %d costs %s", key, c[7])
		}
	})
	maker.uniform(t, "manufacturers", 5)
	brand.uniform(t, "brands", 25)
	typ.uniform(t, "types", 150)
	size.uniform(t, "sizes", 50)
	container.uniform(t, "containers", 40)
	color.uniform(t, "colors", 92)
}

// TestSuppliersOfParts: four different ones, and each supplier has about as many parts.
func TestSuppliersOfParts(t *testing.T) {
	for _, scale := range []float64{0.01, 0.015, 0.02, 0.024, 0.025, 0.0251, 0.03, 0.05, 0.1} {
		of := domain{}
		part, suppliers := 0, sizesAt(scale).suppliers
		var have []int
		rowsFrom(t, "partsupp", scale, func(c [][]byte) {
			if len(have)%suppliersOfPart == 0 {
				part++
				have = have[:0]
			}
			supplier := number(c[1])
			if number(c[0]) != part || supplier < 1 || supplier > suppliers || slices.Contains(have, supplier) {
				t.Fatalf("scale %v: part %d has supplier %d twice, or of none", scale, part, supplier)
			}
			have = append(have, supplier)
			of.add(c[1])
			if n, cost := number(c[2]), number(c[3]); n < 1 || n > 9999 || cost < 1_00 || cost > 1000_00 {
				t.Fatalf("row %q", c)
			}
		})
		if len(of) != suppliers {
			t.Errorf("scale %v: %d suppliers of %d have parts", scale, len(of), suppliers)
		}
		for s, n := range of {
			if n < 40 || n > 200 { // 80 in the mean
				t.Errorf("scale %v: supplier %s has %d parts", scale, s, n)
			}
		}
	}
}

// dayOf finds days by their text.
var dayOf = func() map[string]int {
	of := map[string]int{}
	for i, d := range days {
		of[d] = i
	}
	return of
}()

func TestLines(t *testing.T) {
	const scale = 0.05
	size := sizesAt(scale)
	flag, mode, instruct, quantity, discount, tax := domain{}, domain{}, domain{}, domain{}, domain{}, domain{}
	order, line := 0, 0
	rowsFrom(t, "lineitem", scale, func(c [][]byte) {
		key, part, supplier := number(c[0]), number(c[1]), number(c[2])
		if line++; key != order {
			order, line = key, 1
		}
		if number(c[3]) != line {
			t.Fatalf("order %d: line %s, want %d", key, c[3], line)
		}
		if part < 1 || part > size.parts || !slices.Contains([]int{supplierOf(part, 0, size.suppliers), supplierOf(part, 1, size.suppliers),
			supplierOf(part, 2, size.suppliers), supplierOf(part, 3, size.suppliers)}, supplier) {
			t.Fatalf("order %d: supplier %d of part %d", key, supplier, part)
		}
		if price := number(c[5]); price != number(c[4])/100*tpcdata.RetailPrice(part) {
			t.Fatalf("order %d: %s of part %d cost %s", key, c[4], part, c[5])
		}
		if open := string(c[10]) > "1995-06-17"; open != (string(c[9]) == "O") || !open && string(c[9]) != "F" {
			t.Fatalf("shipped on %s: status %s", c[10], c[9])
		}
		if returned := string(c[12]) <= "1995-06-17"; returned != (string(c[8]) != "N") {
			t.Fatalf("received on %s: flag %s", c[12], c[8])
		} else if returned {
			flag.add(c[8])
		}
		quantity.add(c[4])
		discount.add(c[6])
		tax.add(c[7])
		instruct.add(c[13])
		mode.add(c[14])
	})
	flag.uniform(t, "return flags", 2)
	mode.uniform(t, "ship modes", 7)
	instruct.uniform(t, "instructions", 4)
	quantity.uniform(t, "quantities", 50)
	discount.uniform(t, "discounts", 11)
	tax.uniform(t, "taxes", 9)
}

func TestOrders(t *testing.T) {
	const scale = 0.05
	size := sizesAt(scale)
	customers, asked, clerks, priority, n := map[int]bool{}, 0, domain{}, domain{}, 0
	rowsFrom(t, "orders", scale, func(c [][]byte) {
		n++
		key, customer := number(c[0]), number(c[1])
		if key != n/8*32+n%8 {
			t.Fatalf("order %d has key %d", n, key)
		}
		if customers[customer] = true; customer%3 == 0 || customer < 1 || customer > size.customers {
			t.Fatalf("order %d is of customer %d", key, customer)
		}
		if string(c[4]) > "1998-08-02" {
			t.Fatalf("order of %s", c[4])
		}
		priority.add(c[5])
		clerks.add(c[6])
		if like(c[8], "special", "requests") {
			asked++
		}
	})
	priority.uniform(t, "priorities", 5)
	clerks.uniform(t, "clerks", size.clerks)
	if want := size.customers - size.customers/3; len(customers) < want*99/100 {
		t.Errorf("%d customers have orders, want %d", len(customers), want)
	}
	if share := float64(asked) / float64(n); share < 0.009 || share > 0.013 {
		t.Errorf("%.3f %% of orders have special requests", 100*share)
	}
}

// TestOrdersAreTheirLines: status, sum and dates.
func TestOrdersAreTheirLines(t *testing.T) {
	const scale = 0.05
	type line struct{ ship, commit, receipt int }
	type order struct {
		lines     []line
		open, sum int
	}
	of := map[int]*order{}
	rowsFrom(t, "lineitem", scale, func(c [][]byte) {
		o := of[number(c[0])]
		if o == nil {
			o = &order{}
			of[number(c[0])] = o
		}
		o.lines = append(o.lines, line{dayOf[string(c[10])], dayOf[string(c[11])], dayOf[string(c[12])]})
		o.sum += number(c[5]) * (100 - number(c[6])) * (100 + number(c[7]))
		if string(c[9]) == "O" {
			o.open++
		}
	})
	count := domain{}
	rowsFrom(t, "orders", scale, func(c [][]byte) {
		o := of[number(c[0])]
		if o == nil {
			t.Fatalf("order %s has no lines", c[0])
		}
		status := "P"
		if o.open == 0 {
			status = "F"
		} else if o.open == len(o.lines) {
			status = "O"
		}
		if string(c[2]) != status || number(c[3]) != (o.sum+5000)/10000 {
			t.Fatalf("order %q, want status %s, total %d", c, status, o.sum)
		}
		day := dayOf[string(c[4])]
		for _, l := range o.lines {
			if l.ship <= day || l.ship > day+121 || l.commit < day+30 || l.commit > day+90 || l.receipt <= l.ship || l.receipt > l.ship+30 {
				t.Fatalf("order of day %d: %+v", day, l)
			}
		}
		count.add([]byte{'0' + byte(len(o.lines))})
	})
	count.uniform(t, "lines of orders", 7)
}

func TestCustomers(t *testing.T) {
	segment := domain{}
	key := 0
	rowsFrom(t, "customer", 0.1, func(c [][]byte) {
		if key++; number(c[0]) != key || string(c[1]) != fmt.Sprintf("Customer#%09d", key) || number(c[4][:2]) != 10+number(c[3]) {
			t.Fatalf("row %d is %q", key, c)
		}
		segment.add(c[6])
	})
	segment.uniform(t, "segments", 5)
}

func TestQueries(t *testing.T) {
	queries := Queries()
	if len(queries) != 22 || queries[0].Name != "q01" || queries[21].Name != "q22" {
		t.Fatalf("%d queries", len(queries))
	}
	for _, q := range queries {
		texts := map[string]bool{}
		for run := range 50 {
			text := q.Draw(run, 0.2)
			if texts[text] = true; text != q.Draw(run, 0.2) {
				t.Errorf("%s: run %d has two texts", q.Name, run)
			}
			if strings.ContainsAny(text, "[];") {
				t.Errorf("%s: %s", q.Name, text)
			}
		}
		if q.Name == "q18" { // 312 to 315
			if len(texts) != 4 {
				t.Errorf("%s: %d texts", q.Name, len(texts))
			}
		} else if len(texts) < 5 {
			t.Errorf("%s: %d texts in 50 runs", q.Name, len(texts))
		}
		if text := q.Published(); strings.ContainsAny(text, "[];") {
			t.Errorf("%s: %s", q.Name, text)
		}
	}
	for number, want := range map[int]string{1: "interval '90' day", 11: "* 0.0001000000 FROM", 16: "(49, 14, 23, 45, 19, 3, 36, 9)", 22: "('13', '31', '23', '29', '30', '18', '17')"} {
		if text := queries[number-1].Published(); !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if text := queries[10].Draw(0, 0.2); !strings.Contains(text, "* 0.0005000000 FROM") {
		t.Errorf("the fraction at scale factor 0.2: %s", text)
	}
}
