package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgaccel/internal/clickbench"
)

// TestTiesAtLimit: of rows that tie where LIMIT cuts any are right, and pages of LIMIT and OFFSET make the whole;
// pgaccel.ties = forward leaves the choice to the server. What a query's own LIMIT leaves to it alone is the
// server's choice always.
func TestTiesAtLimit(t *testing.T) {
	const rows = 5000
	s, direct, proxy := generatedStack(t, clickbench.Source, clickbench.ScaleOf(rows), map[string]string{"jit": "off"})
	accelerated := func(sql string, format []int16) (a answer, accelerated bool) {
		t.Helper()
		before := s.queries(t, "accelerated")
		a = ask(t, proxy, sql, format)
		if a.err != "" {
			t.Fatalf("%s: %s", sql, a.err)
		}
		return a, s.queries(t, "accelerated") > before
	}
	for i, c := range []struct{ sql, order string }{
		{"SELECT count(*), SearchPhrase FROM hits GROUP BY SearchPhrase", "count(*) DESC"},
		{"SELECT avg(ResolutionWidth), MobilePhoneModel, HitColor, min(URL) FROM hits GROUP BY MobilePhoneModel, HitColor", "round(avg(ResolutionWidth), -2)"},
		{"SELECT EventDate, UserID, Title FROM hits WHERE AdvEngineID = 0", "EventDate"},
		{"SELECT IsRefresh::float8 AS f, nullif(OS, 3) AS os, CounterID FROM hits WHERE IsLink = 1", "1"},
		{"SELECT DISTINCT nullif(OS, 3) AS os, IsLink FROM hits", "IsLink"},
		{"SELECT UserID, SearchPhrase, count(*) FROM hits GROUP BY UserID, SearchPhrase", ""},
		{"SELECT RegionID, count(*) AS n FROM hits GROUP BY RegionID UNION ALL SELECT OS, count(*) FROM hits GROUP BY OS", "n"},
	} {
		p := protocols[i%len(protocols)]
		if c.order != "" {
			c.order = " ORDER BY " + c.order
		}
		whole := ask(t, direct, c.sql+c.order, p.format)
		page := max(len(whole.rows)/4, 2)
		var pages []string
		for from := 0; from < len(whole.rows); from += page {
			sql := fmt.Sprintf("%s%s LIMIT %d OFFSET %d", c.sql, c.order, page, from)
			a, ours := accelerated(sql, p.format)
			if !ours {
				t.Errorf("%s: forwarded", sql)
			}
			if again, _ := accelerated(sql, p.format); again.String() != a.String() {
				t.Errorf("%s: other rows the second time", sql)
			}
			if want := ask(t, direct, sql, p.format); a.fields != want.fields || a.tag != want.tag || len(a.rows) != len(want.rows) {
				t.Errorf("%s: %s %s, not %s %s", sql, a.fields, a.tag, want.fields, want.tag)
			}
			if c.order != "" && !strings.Contains(c.order, "(") || strings.Contains(c.order, "count") { // the key is a column
				at := 0
				switch {
				case strings.Contains(c.order, "IsLink"), strings.HasSuffix(c.order, " n"):
					at = 1
				}
				for k, row := range a.rows {
					if is, want := strings.Split(row, "|")[at], strings.Split(whole.rows[from+k], "|")[at]; is != want {
						t.Fatalf("%s, row %d: key %s, not %s", sql, k, is, want)
					}
				}
			}
			pages = append(pages, a.rows...)
		}
		slices.Sort(pages)
		slices.Sort(whole.rows)
		if !slices.Equal(pages, whole.rows) {
			t.Errorf("%s%s: pages are not the whole", c.sql, c.order)
		}
	}

	const tied, untied = "SELECT OS, count(*) FROM hits GROUP BY OS ORDER BY OS * 0 LIMIT 3", "SELECT OS, count(*) FROM hits GROUP BY OS ORDER BY OS LIMIT 3"
	for _, step := range []struct {
		set         string
		takes       bool
		takesUntied bool
	}{{"SELECT 1", true, true}, {"SET pgaccel.ties = 'forward'", false, true}, {"SET pgaccel.ties = 'any'", true, true},
		{"SELECT set_config('pgaccel.ties', 'anything', false)", false, true}, {"RESET pgaccel.ties", true, true}} {
		ask(t, proxy, step.set, nil)
		for _, p := range protocols {
			for range 3 { // later ones may have begun before the gate answered
				if a, ours := accelerated(tied, p.format); ours != step.takes || len(a.rows) != 3 {
					t.Errorf("%s, %s: accelerated %v, %d rows", step.set, p.name, ours, len(a.rows))
				}
			}
			a, ours := accelerated(untied, p.format)
			if want := ask(t, direct, untied, p.format); ours != step.takesUntied || a.String() != want.String() {
				t.Errorf("%s, %s: %v %s", step.set, p.name, ours, a)
			}
		}
	}
	if _, ours := accelerated("SELECT sum(n) FROM (SELECT OS, count(*) AS n FROM hits GROUP BY OS ORDER BY OS * 0 LIMIT 3) x", nil); ours {
		t.Error("a LIMIT within a query chose among rows that tie")
	}
	if _, ours := accelerated("SELECT OS, UserID FROM hits LIMIT 3", nil); ours {
		t.Error("LIMIT without ORDER BY reads the table, of which the server needs three rows")
	}
}
