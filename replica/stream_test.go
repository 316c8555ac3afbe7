package replica

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func be(parts ...any) []byte {
	var b []byte
	for _, p := range parts {
		switch p := p.(type) {
		case rune:
			b = append(b, byte(p))
		case int:
			b = binary.BigEndian.AppendUint32(b, uint32(p))
		case uint64:
			b = binary.BigEndian.AppendUint64(b, p)
		case byte:
			b = append(b, p)
		case string:
			b = append(b, p...)
		}
	}
	return b
}

func TestWatcher(t *testing.T) {
	var log []string
	w := watcher{change: func(oid, xid uint32) { log = append(log, fmt.Sprintf("%d by %d", oid, xid)) },
		advance: func(lsn uint64) { log = append(log, fmt.Sprintf("to %d", lsn)) }}
	const lsn, end, ts = uint64(90), uint64(100), uint64(0)
	messages := [][]byte{
		be('B', lsn, ts, 7), be('R', 1, "public\x00a\x00"), be('I', 1, "N"), be('U', 1, "N"), be('D', 2, "K"), be('C', byte(0), lsn, end, ts),
		be('B', lsn, ts, 8), be('T', 2, byte(0), 1, 3), be('M', "x"), be('C', byte(0), lsn, end+1, ts),
		// Two transactions streamed before they end, interleaved with a third; one aborts,
		// one after a part of it has been rolled back.
		be('S', 20, byte(1)), be('I', 21, 5, "N"), be('E'),
		be('S', 30, byte(1)), be('U', 30, 6, "N"), be('T', 30, 1, byte(0), 4), be('E'),
		be('B', lsn, ts, 9), be('I', 1, "N"), be('C', byte(0), lsn, end+2, ts),
		be('S', 20, byte(0)), be('D', 20, 5, "N"), be('E'),
		be('A', 20, 21), be('A', 30, 30),
		be('c', 20, byte(0), lsn, end+3, ts),
	}
	for _, m := range messages {
		if err := w.message(m); err != nil {
			t.Fatalf("%q: %v", m, err)
		}
	}
	want := []string{"1 by 7", "2 by 7", "to 100", "1 by 8", "3 by 8", "to 101", "1 by 9", "to 102", "5 by 20", "to 103"}
	if !slices.Equal(log, want) {
		t.Errorf("got  %s\nwant %s", strings.Join(log, ", "), strings.Join(want, ", "))
	}
	if len(w.streamed) != 0 {
		t.Errorf("left: %v", w.streamed)
	}
	for _, m := range messages {
		if m[0] == 'E' || m[0] == 'R' || m[0] == 'M' {
			continue
		}
		w.streaming = false
		if err := w.message(m[:min(4, len(m)-1)]); err == nil {
			t.Errorf("%q cut short was accepted", m)
		}
	}
	if err := w.message([]byte{'?'}); err == nil {
		t.Error("an unknown message was accepted")
	}
}

func FuzzWatcher(f *testing.F) {
	f.Add(be('T', 2, byte(0), 1, 3), false)
	f.Add(be('I', 21, 5, "N"), true)
	f.Fuzz(func(t *testing.T, b []byte, streaming bool) {
		w := watcher{change: func(oid, xid uint32) {}, advance: func(lsn uint64) {}, streaming: streaming}
		w.message(b)
	})
}

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
