package colstore

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestParseSnapshot(t *testing.T) {
	good := map[string]Snapshot{
		"10:10:":                           {10, 10, nil},
		"10:20:10,14,19":                   {10, 20, []uint64{10, 14, 19}},
		"10:20:10,14,14,19":                {10, 20, []uint64{10, 14, 19}},
		"4294967297:4294967299:4294967298": {1<<32 + 1, 1<<32 + 3, []uint64{1<<32 + 2}},
	}
	for text, want := range good {
		got, err := ParseSnapshot(text)
		if err != nil || got.Xmin != want.Xmin || got.Xmax != want.Xmax || !slices.Equal(got.Xip, want.Xip) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
		if again, err := ParseSnapshot(got.String()); err != nil || again.String() != got.String() {
			t.Errorf("%s: printed as %s", text, got)
		}
	}
	for _, text := range []string{"", "10", "10:20", "10:20:,", "0:5:", "20:10:", "10:20:9", "10:20:20",
		"10:20:15,14", "10:20:x", "10:20:15:", "-1:20:", " 1:2:", "10:20:15, 16", "99999999999999999999:1:"} {
		if s, err := ParseSnapshot(text); err == nil {
			t.Errorf("%q parsed as %v", text, s)
		}
	}
}

// TestSnapshotContained compares ContainedIn with its definition, xid by xid.
func TestSnapshotContained(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	random := func() (s Snapshot) {
		s.Xmax = 1 + r.Uint64N(12)
		s.Xmin = s.Xmax
		for x := uint64(1); x < s.Xmax; x++ {
			if r.IntN(3) == 0 {
				s.Xip = append(s.Xip, x)
				s.Xmin = min(s.Xmin, x)
			}
		}
		return s
	}
	contained := 0
	for range 20000 {
		a, b := random(), random()
		want := true
		for x := range uint64(20) {
			if a.Sees(x) && !b.Sees(x) {
				want = false
			}
			if a.Sees(x) != (x < a.Xmax && !slices.Contains(a.Xip, x)) {
				t.Fatalf("%v.Sees(%d) = %v", a, x, a.Sees(x))
			}
		}
		if a.ContainedIn(b) != want {
			t.Fatalf("(%v).ContainedIn(%v) = %v", a, b, !want)
		}
		if want {
			contained++
		}
	}
	if contained < 100 || contained > 19900 {
		t.Errorf("%d of 20000 contained: the test sees one side only", contained)
	}
	if !(Snapshot{}).ContainedIn(random()) || random().ContainedIn(Snapshot{}) {
		t.Error("the zero snapshot sees nothing")
	}
	// Wide gaps must not be walked through.
	far := Snapshot{Xmin: 1, Xmax: 1 << 62}
	if far.ContainedIn(Snapshot{Xmin: 1, Xmax: 2}) || !(Snapshot{Xmin: 1, Xmax: 2}).ContainedIn(far) {
		t.Error("far snapshots")
	}
}

func FuzzParseSnapshot(f *testing.F) {
	f.Add("10:20:10,14,19")
	f.Add("1:1:")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSnapshot(text)
		if err != nil {
			return
		}
		again, err := ParseSnapshot(s.String())
		if err != nil || again.String() != s.String() || !s.ContainedIn(again) {
			t.Errorf("%q: %v, then %v, %v", text, s, again, err)
		}
	})
}
