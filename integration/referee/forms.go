package referee

import (
	"context"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// forms are those of statements of several blocks, told by their text.
var forms = map[string]*regexp.Regexp{
	"IN (SELECT)":             regexp.MustCompile(`[^T] IN \(+(SELECT|VALUES)`),
	"NOT IN (SELECT)":         regexp.MustCompile(` NOT IN \(+(SELECT|VALUES)`),
	"IN below OR":             regexp.MustCompile(` OR \([^()]+ (NOT )?IN \(SELECT`),
	"EXISTS":                  regexp.MustCompile(`EXISTS \(SELECT`),
	"NOT EXISTS":              regexp.MustCompile(`NOT EXISTS \(SELECT`),
	"ANY (SELECT)":            regexp.MustCompile(` (ANY|SOME) \(+(SELECT|VALUES)`),
	"ALL (SELECT)":            regexp.MustCompile(` ALL \(+SELECT`),
	"a scalar sub-select":     regexp.MustCompile(`([-=<>*/+(,]|SELECT|FROM) \(SELECT [^()]+ (FROM|LIMIT)|[<=>] \(SELECT`),
	"a sub-select in HAVING":  regexp.MustCompile(` HAVING \(*[^()]*(\([^()]*\)[^()]*)*\(SELECT`),
	"a sub-select shown":      regexp.MustCompile(`^SELECT ([^()]*(\([^()]*\))?)*[(, ]\(*SELECT .* FROM`),
	"a sub-select in CASE":    regexp.MustCompile(`(THEN|ELSE|WHEN) \(*(EXISTS )?\(SELECT`),
	"VALUES":                  regexp.MustCompile(`\(VALUES \(`),
	"INTERSECT, EXCEPT ALL":   regexp.MustCompile(` (INTERSECT|EXCEPT) ALL `),
	"a function in FROM":      regexp.MustCompile(`(FROM|JOIN|,) (generate_series|unnest)\(`),
	"rows of a value":         regexp.MustCompile(`JOIN (unnest\(string|jsonb?_)`),
	"rows of several values":  regexp.MustCompile(`JOIN (ROWS FROM \(|unnest\(string_to_array\([^()]*\), )`),
	"rows of a value shown":   regexp.MustCompile(`SELECT ([^()]*(\([^()]*\))?)*(unnest\(string_to|jsonb?_object_keys\(|jsonb?_array_elements_text\()`),
	"rows of several shown":   regexp.MustCompile(`SELECT ([^()]*(\([^()]*\))?)*, (unnest\(string_to|jsonb?_object_keys\(|jsonb?_array_elements_text\().*, (unnest\(string_to|jsonb?_object_keys\(|jsonb?_array_elements_text\()`),
	"DISTINCT ON":             regexp.MustCompile(`SELECT DISTINCT ON `),
	"UNION ALL":               regexp.MustCompile(` UNION ALL `),
	"UNION":                   regexp.MustCompile(` UNION [^A]`),
	"INTERSECT":               regexp.MustCompile(` INTERSECT [^A]`),
	"EXCEPT":                  regexp.MustCompile(` EXCEPT [^A]`),
	"WITH":                    regexp.MustCompile(`^WITH w`),
	"WITH MATERIALIZED":       regexp.MustCompile(`AS MATERIALIZED \(`),
	"WITH read twice":         regexp.MustCompile(` w1 s\d.* w1 s\d`),
	"a derived table":         regexp.MustCompile(`(FROM|JOIN) \(SELECT`),
	"a derived table grouped": regexp.MustCompile(`FROM \(SELECT [^()]*(\([^()]*\)[^()]*)*GROUP BY`),
	"a derived table of sets": regexp.MustCompile(`(ROLLUP|CUBE|GROUPING SETS) \([^()]*\)\) AS s`),
	"a derived table cut":     regexp.MustCompile(`LIMIT \S+( OFFSET \S+)?\) AS s`),
	"a derived table joined":  regexp.MustCompile(` JOIN \(SELECT`),
	"a derived set operation": regexp.MustCompile(`FROM \(SELECT [^()]* (UNION|INTERSECT|EXCEPT) `),
	"a sub-select cut":        regexp.MustCompile(`LIMIT \S+( OFFSET \S+)?\)+ `),
	"LEFT JOIN of a block":    regexp.MustCompile(`LEFT JOIN (\(SELECT|w\d)`),
	"LATERAL":                 regexp.MustCompile(`JOIN LATERAL `),
	"LATERAL cut":             regexp.MustCompile(`JOIN LATERAL \(SELECT .* LIMIT \S+( OFFSET \S+)?\) AS s`),
	"a window":                regexp.MustCompile(` OVER `),
	"a window over groups":    regexp.MustCompile(`^SELECT .* OVER .* FROM .* GROUP BY `),
	"a window in a block":     regexp.MustCompile(`\(SELECT .* OVER `),
	"a named window":          regexp.MustCompile(` WINDOW v1`),
	"a window's ROWS":         regexp.MustCompile(`[( ]ROWS `),
	"a window's RANGE":        regexp.MustCompile(`[( ]RANGE `),
	"a window's GROUPS":       regexp.MustCompile(`[( ]GROUPS `),
	"a window's EXCLUDE":      regexp.MustCompile(` EXCLUDE `),
	"lag, lead":               regexp.MustCompile(`(lag|lead)\(`),
	"first, last, nth_value":  regexp.MustCompile(`(first|last|nth)_value\(`),
	"FULL JOIN":               regexp.MustCompile(` FULL JOIN `),
	"two joins on no key":     regexp.MustCompile(`(JOIN \S+ s\d+ ON [^()]+){2}`),
}

// formsOf returns the forms of a statement.
func formsOf(sql string) (out []string) {
	for name, r := range forms {
		if r.MatchString(sql) {
			out = append(out, name)
		}
	}
	return out
}

// tally counts how many executions of each form were accelerated.
type tally struct {
	mu   sync.Mutex
	seen map[string]tallied // by shape
}

// tallied are the executions of one shape, and why the last one that was forwarded was.
type tallied struct {
	calls, accelerated int
	reason             string
}

// look reads what pgaccel says of the shapes that it knows, which are the last that were asked.
func (t *tally) look(ctx context.Context, s *session) {
	a := s.ask(ctx, "SELECT query, calls, accelerated, concat_ws(': ', reason, detail) FROM pgaccel.queries", nil, protocol{})
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.seen == nil {
		t.seen = map[string]tallied{}
	}
	for _, r := range a.rows {
		calls, _ := strconv.Atoi(string(r[1]))
		accelerated, _ := strconv.Atoi(string(r[2]))
		t.seen[string(r[0])] = tallied{calls, accelerated, string(r[3])}
	}
}

// forms adds up what was seen.
func (t *tally) forms() map[string][2]int {
	out := map[string][2]int{}
	for sql, n := range t.seen {
		for _, f := range formsOf(sql) {
			x := out[f]
			out[f] = [2]int{x[0] + n.calls, x[1] + n.accelerated}
		}
	}
	return out
}

// internal prints the shapes that were forwarded for an internal error.
func (t *tally) internal(w io.Writer) {
	for sql, n := range t.seen {
		if strings.HasPrefix(n.reason, "internal error") {
			fmt.Fprintf(w, "referee: %s: %s\n", n.reason, sql)
		}
	}
}

// details adds up the forwarded executions by what was said of them.
func (t *tally) details() map[string]int {
	out := map[string]int{}
	for _, n := range t.seen {
		if n.calls > n.accelerated {
			out[n.reason] += n.calls - n.accelerated
		}
	}
	return out
}

func (p *Report) printForms(w io.Writer) {
	for _, f := range slices.SortedFunc(maps.Keys(p.Forms), func(a, b string) int { return strings.Compare(a, b) }) {
		n := p.Forms[f]
		fmt.Fprintf(w, "  %-24s %6d asked, %6d accelerated, %5.1f %%\n", f, n[0], n[1], 100*float64(n[1])/float64(max(n[0], 1)))
	}
}
