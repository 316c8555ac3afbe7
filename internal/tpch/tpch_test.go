package tpch

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"

	"pgaccel/internal/pgload"
)

// rowsFrom calls f for each row of a generated table, split into columns that are valid
// during the call. It reads the text, so that it sees what COPY would.
func rowsFrom(t testing.TB, table string, scale float64, f func(c [][]byte)) {
	t.Helper()
	var text bytes.Buffer
	if err := Source.Generate(table, scale, 0, 1, &text); err != nil {
		t.Fatal(err)
	}
	var columns [][]byte
	for line := range bytes.Lines(text.Bytes()) {
		columns = columns[:0]
		for column := range bytes.SplitSeq(bytes.TrimSuffix(line, []byte("\n")), []byte("\t")) {
			columns = append(columns, column)
		}
		f(columns)
	}
}

// number reads an integer, or a decimal with two places as hundredths.
func number(b []byte) int {
	n, err := strconv.Atoi(strings.Replace(string(b), ".", "", 1))
	if err != nil {
		panic(fmt.Sprintf("%q is not a number", b))
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
	f("region", 1, 5)
	f("nation", 100, 25)
	f("supplier", 1, 10_000)
	f("supplier", 0.01, 100)
	f("supplier", 0.012, 200) // 120 would give parts a supplier twice
	f("supplier", 0.025, 250)
	f("part", 1, 200_000)
	f("partsupp", 1, 800_000)
	f("customer", 0.1, 15_000)
	f("orders", 100, 150_000_000)
	for _, scale := range []float64{0.01, 0.1, 1} {
		// 1..7 lines uniformly: mean 4, variance 4 an order.
		orders := 1_500_000 * scale
		got, err := Source.Rows("lineitem", scale)
		if err != nil || math.Abs(float64(got)-4*orders) > 5*math.Sqrt(4*orders) {
			t.Errorf("lineitem at scale factor %v: %d rows (%v)", scale, got, err)
		}
	}
	for _, table := range Source.Tables {
		want, _ := Source.Rows(table, 0.02)
		var got int64
		rowsFrom(t, table, 0.02, func([][]byte) { got++ })
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
	f("lineorder", 1, 0, 1)
	f("part", 0, 0, 1)
	f("part", math.NaN(), 0, 1)
	f("part", 101, 0, 1)
	f("part", 1, 1, 1)
	f("part", 1, -1, 2)
	f("part", 1, 0, 0)
	if _, err := Source.Rows("lineorder", 1); err == nil {
		t.Error("rows of no table")
	}
}

func TestPartsTogetherAreTheTable(t *testing.T) {
	for _, table := range Source.Tables {
		whole := sha256.New()
		if err := Source.Generate(table, 0.01, 0, 1, whole); err != nil {
			t.Fatal(err)
		}
		for _, parts := range []int{1, 2, 7, 500} {
			split := sha256.New()
			for part := range parts {
				if err := Source.Generate(table, 0.01, part, parts, split); err != nil {
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
		"region": "01f7a3f7584bb58e", "nation": "6aba06c7b238e788", "supplier": "b42e17c983500ffe", "part": "9d3b26bdf07c72f1",
		"partsupp": "90f0fb4d6ab2c643", "customer": "6d5927d7660f4250", "orders": "22aa37c10e689e71", "lineitem": "ed667589ab93787b",
	}
	for _, table := range Source.Tables {
		h := sha256.New()
		if err := Source.Generate(table, 0.02, 0, 1, h); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%x", h.Sum(nil)[:8]); got != want[table] {
			t.Errorf("%s: %s, was %s", table, got, want[table])
		}
	}
}

func TestRowsFitTheSchema(t *testing.T) {
	for _, table := range Source.Tables {
		_, body, _ := strings.Cut(Source.Schema(), "CREATE TABLE "+table+" (")
		body, _, _ = strings.Cut(body, ");\n")
		var types []string
		for line := range strings.Lines(strings.TrimSpace(body)) {
			types = append(types, strings.Fields(line)[1])
		}
		rowsFrom(t, table, 0.02, func(c [][]byte) {
			if len(c) != len(types) {
				t.Fatalf("%s: %d columns, want %d: %q", table, len(c), len(types), c)
			}
			for i, typ := range types {
				var most int
				switch {
				case typ == "integer":
					if v := number(c[i]); fmt.Sprint(v) != string(c[i]) || v > math.MaxInt32 {
						t.Fatalf("%s, column %d: %q is no integer", table, i, c[i])
					}
				case typ == "numeric(15,2)":
					if v := number(c[i]); bytes.IndexByte(c[i], '.') != len(c[i])-3 || v > 1e15 {
						t.Fatalf("%s, column %d: %q is no amount", table, i, c[i])
					}
				case typ == "date":
					if s := string(c[i]); len(s) != 10 || s < "1992-01-01" || s > "1998-12-31" {
						t.Fatalf("%s, column %d: %q is no date", table, i, c[i])
					}
				default:
					fmt.Sscanf(typ[strings.IndexByte(typ, '('):], "(%d)", &most)
					if len(c[i]) == 0 || len(c[i]) > most || bytes.ContainsAny(c[i], "\\\r") {
						t.Fatalf("%s, column %d: %q in %s", table, i, c[i], typ)
					}
				}
			}
		})
		if !strings.Contains(pgload.KeysOf(Source.Keys(), table), "PRIMARY KEY") {
			t.Errorf("%s has no key", table)
		}
	}
}

func BenchmarkLineitem(b *testing.B) {
	rows, _ := Source.Rows("lineitem", 0.1)
	for b.Loop() {
		if err := Source.Generate("lineitem", 0.1, 0, 1, io.Discard); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
