package tpch

import (
	"fmt"
	"strings"

	"pgaccel/internal/tpcdata"
)

// Query is one of the 22 queries.
type Query struct {
	Name     string // q01 .. q22
	number   int
	template string // with [NAME] in the places of parameters, as the specification writes them
}

// Queries returns the 22 queries in the benchmark's order.
func Queries() []Query {
	queries := make([]Query, len(parameters))
	for i := range queries {
		name := fmt.Sprintf("q%02d", i+1)
		queries[i] = Query{name, i + 1, strings.TrimSpace(Source.Read(name + ".sql"))}
	}
	return queries
}

// Published returns the text with the parameters by which the specification validates
// answers.
func (q Query) Published() string { return tpcdata.Fill(q.template, parameters[q.number-1].published) }

// Draw returns the text with parameters that are drawn for a run, by the rules of the
// query: the same ones each time for the run.
func (q Query) Draw(run int, scale float64) string {
	r := rowRand(seedParameters, run*len(parameters)+q.number)
	return tpcdata.Fill(q.template, parameters[q.number-1].draw(&r, scale))
}

// parameter is how the parameters of a query are drawn (clause 2.4.x.3), and what they are
// where answers are validated (2.4.x.4): names and values in turns.
type parameter struct {
	draw      func(r *tpcdata.Rand, scale float64) []string
	published []string
}
