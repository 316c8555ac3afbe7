package syntax

import (
	"maps"
	"testing"
)

func TestRepeatedConstants(t *testing.T) {
	for sql, want := range map[string]map[int]string{
		"SELECT a / $1, count(*) FROM t GROUP BY a / 5":                                                        {1: "5"},
		"SELECT extract($1 FROM d), sum(x + $2) FROM t GROUP BY extract(year FROM d)":                          {1: "year"},
		"SELECT date_trunc($1, d) FROM t WHERE a = $2 GROUP BY date_trunc('month', d)":                         {1: "'month'"},
		"SELECT a / $1 FROM t GROUP BY b / 5":                                                                  {},
		"SELECT a / $1 FROM t GROUP BY a * 5":                                                                  {},
		"SELECT * FROM (SELECT CASE WHEN a > $1 THEN $2 END c FROM t ORDER BY CASE WHEN a > 3 THEN 'x' END) s": {1: "3", 2: "'x'"},
		"SELECT DISTINCT ON (a + 1) a + $1 FROM t":                                                             {1: "1"},
		"SELECT $1 FROM":                       {},
		"SELECT a + $1 FROM t GROUP BY a + $2": {},
	} {
		if got := Parse(sql).RepeatedConstants(); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", sql, got, want)
		}
	}
}
