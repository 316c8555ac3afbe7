package clickbench

import (
	"bytes"
	"strings"
	"testing"
)

const testRows = 20_000

func generated(t *testing.T, parts int) []byte {
	t.Helper()
	var text bytes.Buffer
	for part := range parts {
		if err := Source.Generate("hits", ScaleOf(testRows), part, parts, &text); err != nil {
			t.Fatal(err)
		}
	}
	return text.Bytes()
}

func columns() (names []string) {
	_, body, _ := strings.Cut(Source.Schema(), "(\n")
	body, _, _ = strings.Cut(body, "\n);")
	for column := range strings.SplitSeq(strings.ReplaceAll(body, ",\n", ", "), ", ") {
		names = append(names, strings.Fields(column)[0])
	}
	return names
}

func TestTable(t *testing.T) {
	whole := generated(t, 1)
	if !bytes.Equal(whole, generated(t, 7)) {
		t.Error("the table in 7 parts differs from the whole")
	}
	if n := bytes.Count(whole, []byte("\n")); n != testRows {
		t.Errorf("%d rows", n)
	}
	if n := len(columns()); n != 105 {
		t.Errorf("%d columns", n)
	}
	for line := range bytes.Lines(whole) {
		if n := bytes.Count(line, []byte("\t")) + 1; n != 105 {
			t.Fatalf("%d values: %q", n, line)
		}
	}
}

// TestDistributions: shares of the rows are about those that the package's comment says.
func TestDistributions(t *testing.T) {
	values := map[string]map[string]int{}
	names := columns()
	for line := range bytes.Lines(generated(t, 1)) {
		for i, v := range strings.Split(strings.TrimSuffix(string(line), "\n"), "\t") {
			if values[names[i]] == nil {
				values[names[i]] = map[string]int{}
			}
			values[names[i]][v]++
		}
	}
	distinct := func(column string) float64 { return float64(len(values[column])) / testRows }
	share := func(column, value string) float64 { return float64(values[column][value]) / testRows }
	for _, c := range []struct {
		what         string
		is, from, to float64
	}{
		{"WatchID", distinct("WatchID"), 1, 1},
		{"UserID", distinct("UserID"), 0.1, 0.25},
		{"ClientIP", distinct("ClientIP"), 0.05, 0.15},
		{"URL", distinct("URL"), 0.12, 0.45},
		{"Title", distinct("Title"), 0.08, 0.35},
		{"Referer", distinct("Referer"), 0.12, 0.4},
		{"counter 62", share("CounterID", "62"), 0.003, 0.02},
		{"no phrase", share("SearchPhrase", ""), 0.84, 0.9},
		{"phrases", distinct("SearchPhrase"), 0.03, 0.09},
		{"no advertisement", share("AdvEngineID", "0"), 0.985, 0.998},
		{"no telephone", share("MobilePhoneModel", ""), 0.92, 0.98},
		{"days", float64(len(values["EventDate"])), 31, 31},
		{"no link", share("IsLink", "0"), 0.85, 0.97},
	} {
		if c.is < c.from || c.is > c.to {
			t.Errorf("%s: %.4f", c.what, c.is)
		}
	}
}

func TestQueries(t *testing.T) {
	for _, q := range append(Queries(testRows), Variants(testRows)...) {
		if strings.Contains(q.SQL, "[COUNTER]") || strings.Contains(q.SQL, "[SUMS]") || !strings.HasPrefix(q.SQL, "-- ") {
			t.Errorf("%s: %s", q.Name, q.SQL)
		}
	}
}
