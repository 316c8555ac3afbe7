package bench

import (
	"strings"
	"testing"
	"time"
)

// checkWireTables: each query of each mode has spans, and what they say fits into one another.
func checkWireTables(t *testing.T, tables []gpuTable) {
	t.Helper()
	n := 0
	for _, table := range tables {
		if table.Part != "wire" {
			continue
		}
		n++
		if len(table.Rows) != 5 || strings.Contains(strings.Join(table.Notes, "\n"), "INCOMPLETE") {
			t.Errorf("%s: %d rows, %q", table.Title, len(table.Rows), table.Notes)
		}
		for _, row := range table.Rows {
			var p wireParts
			for column := range p {
				p[column], _ = row[1+column].(float64)
			}
			for _, column := range []int{wireClient, wireUntraced, wireDecide, wireGate, wirePrepare, wireKernels, wireResult, wireWrite} {
				if p[column] <= 0 {
					t.Errorf("%s: %v: nothing in %s", table.Title, row, wireColumns[column])
				}
			}
			// Medians over the same executions keep the order of their parts.
			for _, pair := range [][2]int{{wireStatement, wireGate}, {wireRoundTrip, wireWorker}, {wireWorker, wireDevice}, {wireDevice, wireKernels}} {
				if p[pair[0]] < p[pair[1]] {
					t.Errorf("%s: %v: %s takes longer than %s", table.Title, row, wireColumns[pair[1]], wireColumns[pair[0]])
				}
			}
		}
	}
	if n != len(wireModes) {
		t.Errorf("%d tables", n)
	}
}

// TestWireUncovered: spans that overlap, or end behind the one that they are below, count once, and within it.
func TestWireUncovered(t *testing.T) {
	began := time.Unix(1, 0)
	at := func(from, to time.Duration) *span { return &span{began: began.Add(from), took: to - from} }
	s := at(0, 100)
	s.below = []*span{at(40, 70), at(10, 50), at(12, 14), at(90, 120)}
	if got := s.uncovered(); got != 30 {
		t.Errorf("%d of 100 are uncovered, not 30", got)
	}
}
