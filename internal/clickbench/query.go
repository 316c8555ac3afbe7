package clickbench

import (
	"fmt"
	"strconv"
	"strings"

	"pgaccel/internal/tpcdata"
)

// Query is one of the statements.
type Query struct {
	Name string // q01 .. q43; ties, any
	SQL  string
	Open []int // result columns, from 0, in which ties at LIMIT leave the values open
}

const queryCount = 43

// Queries returns the 43 statements, in the benchmark's order. Numbers that rows are compared with, and how many are skipped, are
// in proportion to the rows of the table.
func Queries(rows int64) []Query {
	queries := make([]Query, queryCount)
	for i := range queries {
		name := fmt.Sprintf("q%02d", i+1)
		queries[i] = Query{Name: name, SQL: text(name, rows)}
	}
	return queries
}

// Variants returns two of them, the 13th and the 18th, as they are without what decides among rows that tie.
func Variants(rows int64) []Query {
	return []Query{{"ties", text("ties", rows), []int{0}}, {"any", text("any", rows), []int{0, 1, 2}}}
}

func text(name string, rows int64) string {
	// share is a number in proportion to the rows, most at 10 million and above.
	share := func(most int64) string { return strconv.FormatInt(min(most*rows/10_000_000, most), 10) }
	sums := make([]string, 90)
	for i := range sums {
		sums[i] = fmt.Sprintf("sum(ResolutionWidth + %d) AS plus_%[1]d", i)
	}
	d := domainsOf(int(rows))
	asked := page{askedRank, 0}.hash()
	return tpcdata.Fill(strings.TrimSpace(Source.Read(name+".sql")), []string{
		"COUNTER", strconv.Itoa(askedCounter), "USER", strconv.Itoa(d.visitor(0).user), "MANY", strconv.FormatInt(rows/1000, 10),
		"SKIP", share(1000), "LINKS", share(100), "SUMS", strings.Join(sums, ", "),
		"REFERER", strconv.Itoa(asked), "URL", strconv.Itoa(asked),
	})
}
