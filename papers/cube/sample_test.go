package cube

import (
	"math"
	"testing"
)

// TestSamples holds the generated cubes against what the thesis publishes of its own.
func TestSamples(t *testing.T) {
	const cells = 50_000
	biker, err := Biker(cells)
	if err != nil {
		t.Fatal(err)
	}
	machines, err := Machines(cells)
	if err != nil {
		t.Fatal(err)
	}
	near := func(what string, got, want, by float64) {
		t.Helper()
		if math.Abs(got-want) > by*want {
			t.Errorf("%s: %g, the thesis has %g", what, got, want)
		}
	}
	for s, full := range map[*Sample]float64{biker: BikerCells, machines: MachinesCells} {
		n := float64(s.Cube.Len())
		near(s.Name+" cells", n, cells, 0.02)
		for _, q := range s.Queries {
			var stats Stats
			want, err := SourceBased(t.Context(), s.Cube, Query{q.Area}, Options{Stats: &stats})
			if err != nil {
				t.Fatal(err)
			}
			overall := 1
			for _, list := range q.Area {
				overall *= len(list)
			}
			if int64(overall) != q.Overall {
				t.Errorf("%s: %d target cells, the thesis has %d", q.Name, overall, q.Overall)
			}
			near(q.Name+" filled target cells", float64(len(want[0].Targets)), float64(q.Filled), 0.01)
			near(q.Name+" relevant cells", float64(stats.Relevant)/n, float64(q.Relevant)/full, 0.05)
			near(q.Name+" additions", float64(stats.Adds)/float64(stats.Relevant), float64(q.Additions)/float64(q.Relevant), 0.05)
			if got, err := Aggregate(t.Context(), s.Cube, Query{q.Area}, Options{}); err != nil || !same(got, want) {
				t.Errorf("%s: %v or another answer", q.Name, err)
			}
		}
	}
}

// TestPreaggregationEfficiency compares what the two preaggregations save with table
// 5.2, where that does not depend on the cube's unpublished parts: all of it for
// one target cell, nothing where neighbours' targets differ.
func TestPreaggregationEfficiency(t *testing.T) {
	s, err := Machines(20_000)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{1.0 / 32, 1} {
		q := s.Queries[2*i] // M1, M3
		for _, f := range []Executor[float64]{ParallelSourceBased[float64], DynamicParallelism[float64]} {
			var none, pre Stats
			for _, o := range []Options{{Stats: &none}, {Stats: &pre, Preaggregation: PreaggregateStride}} {
				if _, err := f(t.Context(), s.Cube, Query{q.Area}, o); err != nil {
					t.Fatal(err)
				}
			}
			if share := float64(pre.Adds) / float64(none.Adds); math.Abs(share-want) > 0.02*want {
				t.Errorf("%s: %.4f of the additions are left, the thesis has %.4f", q.Name, share, want)
			}
		}
	}
}
