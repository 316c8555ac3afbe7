package events

import (
	"fmt"
	"strings"
	"text/template"
	"time"
)

// Query is one of the 20 queries.
type Query struct {
	Name string // q01 .. q20
	SQL  string // without the semicolon
	// Unordered is true where the query leaves the order of its rows to the server.
	Unordered bool
	// Inexact are the result columns, counted from 0, of aggregates over double precision
	// whose last digits depend on the order in which the server meets the rows.
	Inexact []int
}

// queryRows is the number of rows that the queries are written for.
const queryRows = 10_000_000

// Queries returns the 20 queries for a table of that many rows. Where there are fewer
// than ten million, narrow ranges of time are as much longer and thresholds as much lower,
// so that they choose about the same number of rows and the same groups.
func Queries(rows int64) []Query {
	unordered := map[string]bool{"q10": true, "q11": true}
	inexact := map[string][]int{"q01": {2}, "q19": {1, 2}}
	scale := template.FuncMap{
		"after": func(from, length string) (string, error) {
			start, err := time.Parse("2006-01-02 15:04", from)
			if err != nil {
				return "", err
			}
			d, err := time.ParseDuration(length)
			d = time.Duration(float64(d) * max(1, queryRows/float64(rows)))
			return start.Add(d).Format("2006-01-02 15:04:05+00"), err
		},
		"share": func(n int64) int64 { return max(1, min(n, n*rows/queryRows)) },
	}
	queries := make([]Query, 20)
	for i := range queries {
		name := fmt.Sprintf("q%02d", i+1)
		var sql strings.Builder
		if err := template.Must(template.New(name).Funcs(scale).Parse(read(name+".sql"))).Execute(&sql, nil); err != nil {
			panic("BUG: " + err.Error())
		}
		queries[i] = Query{name, strings.TrimSuffix(strings.TrimSpace(sql.String()), ";"), unordered[name], inexact[name]}
	}
	return queries
}
