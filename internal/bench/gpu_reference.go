package bench

import (
	"context"
	"fmt"
	"strings"

	"pgaccel/internal/ssb"
	"pgaccel/olap"
	"pgaccel/vector"
)

// whoseData is for titles.
func (r *gpuRun) whoseData() string {
	if r.SSBFiles != "" {
		return ", dbgen's data"
	}
	return ""
}

// hasReference reports whether the answers are known that d must give.
func (r *gpuRun) hasReference(d *ssbData) bool {
	return r.SSBFiles != "" && r.Scale == publishedScale && d.rows == referenceRows
}

func (r *gpuRun) dataNote(d *ssbData) string {
	switch {
	case r.hasReference(d):
		return "The data is dbgen's: groups, sums and the numbers of rows aggregated are compared with the reference answers (whose q2.3 asks for " + referenceBrand + ": it is asked so once, too), all rows with the CPU engine's."
	case r.SSBFiles != "" && r.Scale == publishedScale:
		return fmt.Sprintf("The data is dbgen's, but of %d rows, where the reference answers are of %d: rows are compared with the CPU engine's only.", d.rows, referenceRows)
	case r.SSBFiles != "":
		return "The data is dbgen's: rows are compared with the CPU engine's."
	}
	return "The data is pgaccel's own generator's, which follows the benchmark's rules but not dbgen's random numbers: sums are compared with the CPU engine's."
}

// ssbAnswer is what a query's answer comes to.
type ssbAnswer struct {
	groups int
	sum    int64 // of the groups' sums
	rows   int64 // of lineorder that were aggregated
}

func (a ssbAnswer) String() string {
	return fmt.Sprintf("%d groups, sum %d, %d rows aggregated", a.groups, a.sum, a.rows)
}

// queryBrand is the brand of q2.3 in the paper's revision 3, referenceBrand that of other
// texts of the benchmark, and of the kernels of published.
const queryBrand, referenceBrand = "MFGR#2239", "MFGR#2221"

// compare has an error where the processor's answers are not those of the reference.
func (d *ssbData) compare(ctx context.Context, reference map[string]ssbAnswer) error {
	var wrong []string
	for _, q := range ssb.Queries() {
		if q.Name == "q2.3" {
			q.SQL = strings.Replace(q.SQL, queryBrand, referenceBrand, 1)
		}
		got, err := d.answer(ctx, q)
		if err != nil {
			return fmt.Errorf("%s: %w", q.Name, err)
		}
		if got != reference[q.Name] {
			wrong = append(wrong, fmt.Sprintf("%s: %v; the reference has %v", q.Name, got, reference[q.Name]))
		}
	}
	return wrongAnswers(wrong)
}

// answer has the processor answer a query, and count the rows that it aggregates.
func (d *ssbData) answer(ctx context.Context, q ssb.Query) (a ssbAnswer, err error) {
	execute := func(sql string) (*vector.Batch, error) {
		p, err := d.plan(q.Name, sql)
		if err != nil {
			return nil, err
		}
		return olap.Execute(ctx, p.q, p.in, olap.Options{})
	}
	groups, err := execute(q.SQL)
	if err != nil {
		return a, err
	}
	_, from, _ := strings.Cut(q.SQL, "\nFROM ")
	from, _, _ = strings.Cut(from, "\nGROUP BY ")
	count, err := execute("SELECT count(*) FROM " + from)
	if err != nil {
		return a, err
	}
	a.groups, a.rows = groups.Rows, count.Columns[0].Ints[0]
	sums := groups.Columns[len(groups.Columns)-1]
	if strings.HasPrefix(q.Name, "q2") {
		sums = groups.Columns[0]
	}
	for _, v := range sums.Ints {
		a.sum += v
	}
	return a, nil
}
