package ssb

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgaccel/internal/pgload"
	"pgaccel/internal/tpcdata"
)

// rowsFrom calls f for each row of a generated table, split into columns that are valid
// during the call. It reads the text, so that it sees what COPY would.
func rowsFrom(t testing.TB, table string, scale float64, f func(columns [][]byte)) {
	t.Helper()
	var columns [][]byte
	w := writerFunc(func(p []byte) (int, error) {
		n := len(p)
		for len(p) > 0 {
			end := bytes.IndexByte(p, '\n')
			if end < 0 {
				return 0, fmt.Errorf("a write ends inside a row: %q", p)
			}
			row := p[:end]
			p = p[end+1:]
			columns = columns[:0]
			for {
				tab := bytes.IndexByte(row, '\t')
				if tab < 0 {
					break
				}
				columns = append(columns, row[:tab])
				row = row[tab+1:]
			}
			f(append(columns, row))
		}
		return n, nil
	})
	if err := Source.Generate(table, scale, 0, 1, w); err != nil {
		t.Fatal(err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func number(b []byte) int {
	n := 0
	for _, c := range b {
		if c < '0' || c > '9' {
			panic(fmt.Sprintf("%q is not a number", b))
		}
		n = n*10 + int(c-'0')
	}
	return n
}

func TestCardinalities(t *testing.T) {
	f := func(table string, scale float64, want int64) {
		t.Helper()
		if got, err := Source.Rows(table, scale); err != nil || got != want {
			t.Errorf("%s at scale factor %v: %d rows, want %d (%v)", table, scale, got, want, err)
		}
	}
	f("customer", 1, 30_000)
	f("customer", 100, 3_000_000)
	f("supplier", 1, 2_000)
	f("supplier", 0.01, 20)
	f("part", 1, 200_000)
	f("part", 0.25, 50_000)
	f("part", 1.9, 200_000)
	f("part", 2, 400_000)
	f("part", 20, 1_000_000)
	f("part", 100, 1_400_000)
	f("dates", 0.01, 2556)
	f("dates", 100, 2556)
	for _, scale := range []float64{0.01, 0.1, 1, 3.5} {
		// 1..7 lines uniformly: mean 4, variance 4 an order.
		orders := 1_500_000 * scale
		got, err := Source.Rows("lineorder", scale)
		if err != nil || math.Abs(float64(got)-4*orders) > 5*math.Sqrt(4*orders) {
			t.Errorf("lineorder at scale factor %v: %d rows (%v)", scale, got, err)
		}
	}
	for _, table := range Source.Tables {
		want, _ := Source.Rows(table, 0.03)
		var got int64
		rowsFrom(t, table, 0.03, func([][]byte) { got++ })
		if got != want {
			t.Errorf("%s: %d rows, Rows says %d", table, got, want)
		}
	}
}

func TestWrongArguments(t *testing.T) {
	f := func(table string, scale float64, part, parts int) {
		t.Helper()
		if err := Source.Generate(table, scale, part, parts, io.Discard); err == nil {
			t.Errorf("%s, scale factor %v, part %d of %d: no error", table, scale, part, parts)
		}
	}
	f("orders", 1, 0, 1)
	f("part", 0, 0, 1)
	f("part", math.NaN(), 0, 1)
	f("part", 101, 0, 1)
	f("part", 1, 1, 1)
	f("part", 1, -1, 2)
	f("part", 1, 0, 0)
}

func TestPartsTogetherAreTheTable(t *testing.T) {
	for _, table := range Source.Tables {
		whole, again := sha256.New(), sha256.New()
		if err := Source.Generate(table, 0.02, 0, 1, whole); err != nil {
			t.Fatal(err)
		}
		Source.Generate(table, 0.02, 0, 1, again)
		if !bytes.Equal(whole.Sum(nil), again.Sum(nil)) {
			t.Errorf("%s: two runs differ", table)
		}
		for _, parts := range []int{2, 3, 7, 64, 5000} {
			split := sha256.New()
			for part := range parts {
				if err := Source.Generate(table, 0.02, part, parts, split); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(whole.Sum(nil), split.Sum(nil)) {
				t.Errorf("%s in %d parts differs from the whole", table, parts)
			}
		}
	}
}

// The bytes are part of what a benchmark's figures mean: a change of the generator must
// be a decision.
func TestBytesStayTheSame(t *testing.T) {
	want := map[string]string{
		"dates": "56313353e35f5ae2", "supplier": "0d60c1c27248e6fb", "customer": "9e63df2a7c67f1d5",
		"part": "b1292143d3c710d5", "lineorder": "e14fd4cbfa37a63a",
	}
	for _, table := range Source.Tables {
		h := sha256.New()
		if err := Source.Generate(table, 0.05, 0, 1, h); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%x", h.Sum(nil)[:8]); got != want[table] {
			t.Errorf("%s: %s, was %s", table, got, want[table])
		}
	}
}

// columnLengths reads the varchar lengths of a table out of schema.sql; -1 is an integer.
func columnLengths(t *testing.T, table string) (lengths []int) {
	_, body, _ := strings.Cut(Source.Schema(), "CREATE TABLE "+table+" (")
	body, _, _ = strings.Cut(body, ");")
	for _, l := range strings.Split(strings.TrimSpace(body), "\n") {
		typ := strings.Fields(l)[1]
		if typ == "integer" {
			lengths = append(lengths, -1)
			continue
		}
		n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(typ, "varchar("), ")"))
		if err != nil {
			t.Fatalf("%s: column %q", table, l)
		}
		lengths = append(lengths, n)
	}
	return lengths
}

func TestRowsFitTheSchema(t *testing.T) {
	for _, table := range Source.Tables {
		lengths := columnLengths(t, table)
		longest := make([]int, len(lengths))
		rowsFrom(t, table, 0.1, func(columns [][]byte) {
			if len(columns) != len(lengths) {
				t.Fatalf("%s: %d columns, want %d: %q", table, len(columns), len(lengths), columns)
			}
			for i, c := range columns {
				if lengths[i] < 0 {
					if v := number(c); len(c) == 0 || v > math.MaxInt32 {
						t.Fatalf("%s, column %d: %q is no integer", table, i, c)
					}
				} else if longest[i] = max(longest[i], len(c)); len(c) == 0 || len(c) > lengths[i] || bytes.ContainsAny(c, "\\\r") {
					t.Fatalf("%s, column %d: %q in varchar(%d)", table, i, c, lengths[i])
				}
			}
		})
	}
}

// domain collects a column's different values.
type domain map[string]int

func (d domain) add(b []byte) { d[string(b)]++ }

func TestDimensionDomains(t *testing.T) {
	size := func(name string, d domain, want int) {
		t.Helper()
		if len(d) != want {
			t.Errorf("%s: %d different values, want %d", name, len(d), want)
		}
	}
	for table, rows := range map[string]int{"customer": 30_000, "supplier": 2_000} {
		tag := map[string]string{"customer": "Customer", "supplier": "Supplier"}[table]
		city, nation, region, ofCity, ofNation := domain{}, domain{}, domain{}, domain{}, domain{}
		key := 0
		rowsFrom(t, table, 1, func(c [][]byte) {
			key++
			if number(c[0]) != key || string(c[1]) != fmt.Sprintf("%s#%09d", tag, key) {
				t.Fatalf("%s: row %d is %q", table, key, c)
			}
			city.add(c[3])
			nation.add(c[4])
			region.add(c[5])
			ofCity.add(slices.Concat(c[3], c[4]))
			ofNation.add(slices.Concat(c[4], c[5]))
			if want := fmt.Sprintf("%-9s", string(c[4]))[:9]; string(c[3][:9]) != want || len(c[3]) != 10 {
				t.Fatalf("%s: city %q of nation %q", table, c[3], c[4])
			}
			if code := number(c[6][:2]); tpcdata.Nations[code-10].Name != string(c[4]) || len(c[6]) != 15 {
				t.Fatalf("%s: phone %q of nation %q", table, c[6], c[4])
			}
		})
		size(table+" cities", city, 250)
		size(table+" nations", nation, 25)
		size(table+" regions", region, 5)
		size(table+" cities in nations", ofCity, 250)
		size(table+" nations in regions", ofNation, 25)
		for name, n := range nation {
			if want := float64(rows) / 25; math.Abs(float64(n)-want) > 5*math.Sqrt(want) {
				t.Errorf("%s: nation %s has %d of %d rows", table, name, n, rows)
			}
		}
	}
	mfgr, category, brand, color, typ, sizes, container, name := domain{}, domain{}, domain{}, domain{}, domain{}, domain{}, domain{}, domain{}
	key := 0
	rowsFrom(t, "part", 1, func(c [][]byte) {
		if key++; number(c[0]) != key {
			t.Fatalf("part: row %d is %q", key, c)
		}
		mfgr.add(c[2])
		category.add(c[3])
		brand.add(c[4])
		color.add(c[5])
		typ.add(c[6])
		sizes.add(c[7])
		container.add(c[8])
		name.add(c[1])
		if !bytes.HasPrefix(c[3], c[2]) || !bytes.HasPrefix(c[4], c[3]) {
			t.Fatalf("part: brand %q of category %q of manufacturer %q", c[4], c[3], c[2])
		}
		if two := bytes.Fields(c[1]); len(two) != 2 || bytes.Equal(two[0], two[1]) || bytes.Equal(two[0], c[5]) || bytes.Equal(two[1], c[5]) {
			t.Fatalf("part: name %q, color %q", c[1], c[5])
		}
	})
	size("manufacturers", mfgr, 5)
	size("categories", category, 25)
	size("brands", brand, 1000)
	size("colors", color, 92)
	size("names", name, 92*91)
	size("types", typ, 150)
	size("sizes", sizes, 50)
	size("containers", container, 40)
}

func TestDates(t *testing.T) {
	days, lastOfMonth, lastOfWeek, weeks, years, months, seasons := 0, 0, 0, domain{}, domain{}, domain{}, domain{}
	var first, last string
	rowsFrom(t, "dates", 1, func(c [][]byte) {
		last = string(bytes.Join(c, []byte("|")))
		if days == 0 {
			first = last
		}
		days++
		years.add(c[4])
		months.add(c[6])
		seasons.add(c[12])
		lastOfWeek += number(c[13])
		lastOfMonth += number(c[14])
		if number(c[4]) == 1994 {
			weeks.add(c[11])
		}
	})
	if want := "19920101|January 1, 1992|Wednesday|January|1992|199201|Jan1992|4|1|1|1|1|Winter|0|0|1|1"; first != want {
		t.Errorf("first day %s\n     want %s", first, want)
	}
	if want := "19981230|December 30, 1998|Wednesday|December|1998|199812|Dec1998|4|30|364|12|53|Christmas|0|0|0|1"; last != want {
		t.Errorf("last day %s\n    want %s", last, want)
	}
	if days != 2556 || lastOfMonth != 83 || lastOfWeek != 365 || len(years) != 7 || len(months) != 84 || len(seasons) != 5 {
		t.Errorf("%d days, %d ends of months, %d Saturdays, %d years, %d months, %d seasons",
			days, lastOfMonth, lastOfWeek, len(years), len(months), len(seasons))
	}
	if weeks["1"] != 6 || weeks["6"] != 7 {
		t.Errorf("week 1 has %d days, week 6 %d", weeks["1"], weeks["6"])
	}
}

func TestQueries(t *testing.T) {
	queries := Queries()
	if len(queries) != 13 {
		t.Fatalf("%d queries", len(queries))
	}
	for _, q := range queries {
		if !strings.HasPrefix(q.SQL, "SELECT") || strings.Contains(q.SQL, ";") {
			t.Errorf("%s: %s", q.Name, q.SQL)
		}
	}
	for _, table := range Source.Tables {
		if !strings.Contains(Source.Schema(), "CREATE TABLE "+table+" (") || !strings.Contains(pgload.KeysOf(Source.Keys(), table), "PRIMARY KEY") {
			t.Errorf("%s has no schema or no key", table)
		}
	}
}

func BenchmarkLineorder(b *testing.B) {
	rows, _ := Source.Rows("lineorder", 0.1)
	for b.Loop() {
		if err := Source.Generate("lineorder", 0.1, 0, 1, io.Discard); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
