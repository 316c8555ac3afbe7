package wahdata

import (
	"slices"
	"testing"
)

// TestPublishedShapes has the numbers of the paper's section 4.
func TestPublishedShapes(t *testing.T) {
	want := map[string]struct{ rows, attributes, bins int }{
		"KDD":     {4_898_431, 42, 475},
		"linkage": {5_749_132, 12, 130},
		"BPA":     {7_273_800, 20, 1367},
		"Zipf":    {32_000_000, 10, 100},
	}
	for _, s := range Sets(false) {
		if w := want[s.Name]; s.Rows != w.rows || len(s.Bins) != w.attributes || s.Total() != w.bins {
			t.Errorf("%s: %d rows, %d attributes, %d bins", s.Name, s.Rows, len(s.Bins), s.Total())
		}
	}
}

func TestColumns(t *testing.T) {
	for _, s := range Sets(true) {
		s.Rows = 50_000
		same := 0
		for a := range s.Bins {
			first, again := s.Column(a, nil), s.Column(a, make([]uint8, 0, s.Rows))
			counts := make([]int, s.Bins[a])
			for i, v := range first {
				if again[i] != v {
					t.Fatalf("%s, attribute %d: another value in row %d the second time", s.Name, a, i)
				}
				counts[v]++
				if i > 0 && first[i-1] == v {
					same++
				}
			}
		}
		share := float64(same) / float64(s.Rows*len(s.Bins))
		t.Logf("%s: %.1f %% of rows are in the bin of the row before", s.Name, 100*share)
		if s.Name == "KDD" && share < 0.97 {
			t.Errorf("KDD is to be clustered: %.2f", share)
		}
	}
}

func TestZipfIsThePapersDistribution(t *testing.T) {
	s := Sets(true)[3]
	counts := make([]float64, 10)
	for _, v := range s.Column(0, nil) {
		counts[v]++
	}
	// 1/k^2 by their sum 1.5498.
	for k, want := range []float64{0.6453, 0.1613, 0.0717, 0.0403, 0.0258} {
		if got := counts[k] / float64(s.Rows); got < want*0.98 || got > want*1.02 {
			t.Errorf("rank %d: %.4f of the rows, want %.4f", k+1, got, want)
		}
	}
}

func TestPick(t *testing.T) {
	for _, s := range Sets(true) {
		seen := map[Bin]bool{}
		for _, b := range s.Pick(64) {
			if seen[b] || b.Bin >= s.Bins[b.Attribute] {
				t.Errorf("%s: %v", s.Name, b)
			}
			seen[b] = true
		}
		if len(seen) != 64 || len(s.Pick(1<<20)) != s.Total() {
			t.Errorf("%s: %d bins", s.Name, len(seen))
		}
	}
}

func TestBitmaps(t *testing.T) {
	for _, s := range Sets(true) {
		s.Rows = 10_000
		picked := s.Pick(64)
		for i, b := range s.Bitmaps(picked) {
			if b.Len() != s.Rows {
				t.Fatalf("%s: bitmap of %d rows", s.Name, b.Len())
			}
			var want []int
			for row, v := range s.Column(picked[i].Attribute, nil) {
				if int(v) == picked[i].Bin {
					want = append(want, row)
				}
			}
			if !slices.Equal(slices.Collect(b.All()), want) {
				t.Fatalf("%s, %v: other rows than the %d of the column", s.Name, picked[i], len(want))
			}
		}
	}
}
