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
