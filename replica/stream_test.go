package replica

import "testing"

func TestWiden(t *testing.T) {
	for _, c := range []struct {
		xid  uint32
		near uint64
		want uint64
	}{
		{5, 5, 5}, {4, 5, 4}, {6, 5, 6}, {0xFFFFFFF0, 1 << 32, 0xFFFFFFF0}, {3, 0xFFFFFFFF, 1<<32 + 3}, {3, 7<<32 + 0xFFFFFFF0, 8<<32 + 3},
		{0xFFFFFFF0, 8<<32 + 3, 7<<32 + 0xFFFFFFF0},
	} {
		if got := widen(c.xid, c.near); got != c.want {
			t.Errorf("widen(%#x, %#x) = %#x, want %#x", c.xid, c.near, got, c.want)
		}
	}
}

// TestMarkersOfOthers: other pgaccels of the database, or anybody, write messages of our
// prefix. They are not taken for our marker, and do not hide it.
func TestMarkersOfOthers(t *testing.T) {
	s := &stream{expected: marker{ID: "saved", End: 100}}
	ours := "ours"
	s.marker("theirs")
	s.awaited.Store(&ours)
	s.marker("theirs")
	if id := s.marked.Load(); id != nil || s.expected.ID != "saved" {
		t.Fatalf("%v came, %q is expected", id, s.expected.ID)
	}
	s.marker("saved")
	s.marker(ours)
	s.marker("theirs")
	if id := s.marked.Load(); id == nil || *id != ours || s.expected.ID != "" {
		t.Fatalf("%v came, %q is expected", id, s.expected.ID)
	}
}
