package bench

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// indexQuery is a statement over rows that a condition leaves.
type indexQuery struct {
	statement
	where string // the first query of a condition begins with their count
}

// indexBins are how many bins the papers' range queries have.
var indexBins = []int{4, 16, 64}

// binQueries are range queries over a table of the papers' attributes: counts, and sums of attributes without a condition.
func (t *indexTable) binQueries(bins []int) (queries []indexQuery) {
	for _, n := range indexBins {
		ranges := binRanges(bins, n)
		var conditions, sums []string
		for a := range bins {
			name := fmt.Sprintf("%s%d", t.prefix, a)
			i := slices.IndexFunc(ranges, func(r binRange) bool { return r.attribute == a })
			switch {
			case i >= 0:
				conditions = append(conditions, fmt.Sprintf("%s BETWEEN %d AND %d", name, ranges[i].lo, ranges[i].hi))
			case len(sums) < 2:
				sums = append(sums, "sum("+name+")")
			}
		}
		where := strings.Join(conditions, " AND ")
		queries = append(queries, t.query(fmt.Sprint(n), "count(*)", where, ""),
			t.query(fmt.Sprint(n, " sums"), "count(*), "+strings.Join(sums, ", "), where, ""))
	}
	return queries
}

func (t *indexTable) query(name, list, where, rest string) indexQuery {
	return indexQuery{statement{Name: name, SQL: fmt.Sprintf("SELECT %s FROM %s WHERE %s%s", list, t.name, where, rest)}, where}
}

// binRange is neighbouring bins of an attribute.
type binRange struct{ attribute, lo, hi int }

// binRanges are n bins: of the attribute that has the fewest of those with more than n; where none has, of several, two
// thirds of each, from the one with the most on. They begin in the middle, or end at the last: the first bins have most rows.
func binRanges(bins []int, n int) (ranges []binRange) {
	add := func(attribute, n int) {
		lo := min(bins[attribute]/2, bins[attribute]-n)
		ranges = append(ranges, binRange{attribute, lo, lo + n - 1})
	}
	one, order := -1, make([]int, len(bins))
	for a, have := range bins {
		order[a] = a
		if have > n && (one < 0 || have < bins[one]) {
			one = a
		}
	}
	if one >= 0 {
		add(one, n)
		return ranges
	}
	sort.SliceStable(order, func(i, k int) bool { return bins[order[i]] > bins[order[k]] })
	for _, a := range order {
		if take := min(n, (2*bins[a]+2)/3); take > 0 {
			add(a, take)
			n -= take
		}
	}
	return ranges
}

// inValues is how many values the list of the IN query has.
const inValues = 200

// wideQueries are conjunctions over the table of large values, and a list of values.
func (t *indexTable) wideQueries(w *plateaus) (queries []indexQuery) {
	for _, columns := range []int{2, 4, 8} {
		sum := "c7"
		if columns == indexAttributes {
			sum = "key" // that has no condition
		}
		for _, share := range []float64{0.01, 0.001, 0.0001} {
			var conditions []string
			for c, r := range w.ranges(columns, share) {
				conditions = append(conditions, fmt.Sprintf("c%d BETWEEN %d AND %d", c, r.lo, r.hi))
			}
			name, where := fmt.Sprintf("%d %g%%", columns, 100*share), strings.Join(conditions, " AND ")
			queries = append(queries, t.query(name, "count(*)", where, ""),
				t.query(name+" sum", "count(*), sum("+sum+")", where, ""),
				t.query(name+" rows", "*", where, " ORDER BY key LIMIT 100"))
		}
	}
	where := "c0 IN (" + strings.Join(w.list(inValues), ", ") + ")"
	return append(queries, t.query("in", "count(*)", where, ""), t.query("in sum", "count(*), sum(c7)", where, ""))
}

// list are so many values of the first column, or all, from all over the table.
func (w *plateaus) list(n int) (values []string) {
	walk := w[0]
	n = min(n, len(walk))
	for i := range n {
		values = append(values, fmt.Sprint(walk[len(walk)*i/n].value))
	}
	return values
}

// quickQueries are one of each kind.
func (t *indexTable) quickQueries() (queries []indexQuery) {
	kinds := map[string]bool{}
	for _, q := range t.queries {
		kind := strings.TrimLeft(q.Name, "0123456789.% ")
		if !kinds[kind] {
			kinds[kind] = true
			queries = append(queries, q)
		}
	}
	return queries
}
