package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// history parses transactions, one a line: "T2 0-3 w x 1, r y 1 2" appends 1 to list
// x and reads [1 2] from y, between the instants 0 and 3. "abort" and "unknown" may
// follow the instants.
func parseHistory(t *testing.T, text string) []*txn {
	t.Helper()
	var txns []*txn
	origin := time.Now()
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		var from, to int
		if _, err := fmt.Sscanf(fields[1], "%d-%d", &from, &to); err != nil {
			t.Fatal(line, err)
		}
		x := &txn{id: len(txns), who: fields[0], began: origin.Add(time.Duration(from) * time.Second), ended: origin.Add(time.Duration(to) * time.Second)}
		rest := fields[2:]
		switch rest[0] {
		case "abort":
			x.state, rest = txnAborted, rest[1:]
		case "unknown":
			x.state, x.ended, rest = txnUnknown, time.Time{}, rest[1:]
		}
		for op := range strings.SplitSeq(strings.Join(rest, " "), ", ") {
			f := strings.Fields(op)
			o := listOp{key: int(f[1][0]), read: f[0] == "r"}
			for _, v := range f[2:] {
				var n int
				fmt.Sscan(v, &n)
				if o.read {
					o.list = append(o.list, n)
				} else {
					o.value = n
				}
			}
			x.ops = append(x.ops, o)
		}
		txns = append(txns, x)
	}
	return txns
}

func lists(text string) map[int][]int {
	final := map[int][]int{}
	for list := range strings.SplitSeq(text, ", ") {
		f := strings.Fields(list)
		for _, v := range f[1:] {
			var n int
			fmt.Sscan(v, &n)
			final[int(f[0][0])] = append(final[int(f[0][0])], n)
		}
	}
	return final
}

func TestCheckerFindsAnomalies(t *testing.T) {
	for _, c := range []struct{ name, history, final, want string }{
		{"serial", "A 0-1 w x 1\nB 2-3 r x 1, w x 2\nC 4-5 r x 1 2", "x 1 2", ""},
		{"concurrent readers may differ", "A 0-9 w x 1\nB 1-2 r x\nC 3-4 r x 1", "x 1", ""},
		{"write skew is allowed", "A 0-9 r x, r y, w x 1\nB 0-9 r x, r y, w y 2", "x 1, y 2", ""},
		{"what is unknown may be there", "A 0-1 unknown w x 1\nB 2-3 r x 1", "x 1", ""},
		{"or not", "A 0-1 unknown w x 1\nB 2-3 r x", "x", ""},
		{"or come late", "A 0-1 unknown w x 1\nB 2-3 r x\nC 4-5 r x 1", "x 1", ""},
		{"lost write", "A 0-1 w x 1", "x", "lost write"},
		{"aborted write", "A 0-1 abort w x 1", "x 1", "aborted write"},
		{"garbage", "A 0-1 w x 1", "x 1 7", "garbage"},
		{"duplicate", "A 0-1 w x 1", "x 1 1", "duplicate"},
		{"G1a", "A 0-1 abort w x 1\nB 2-3 r x 1", "x", "G1a"},
		{"G1b", "A 0-9 w x 1, w x 2\nB 0-9 r x 1", "x 1 2", "G1b"},
		{"order", "A 0-9 w x 1\nB 0-9 w x 2\nC 0-9 r x 2", "x 1 2", "incompatible order"},
		{"internal", "A 0-9 w x 1\nB 0-9 r x, r x 1", "x 1", "internal"},
		{"own write unseen", "A 0-9 w x 1, r x", "x 1", "internal"},
		{"G0", "A 0-9 w x 1, w y 1\nB 0-9 w x 2, w y 2", "x 1 2, y 2 1", "G0"},
		{"G1c", "A 0-9 w x 1, r y 2\nB 0-9 w y 2, r x 1", "x 1, y 2", "G1c"},
		{"read skew", "A 0-9 w x 1, w y 1\nB 0-9 r x 1, r y", "x 1, y 1", "G-single"},
		{"lost update", "A 0-9 r x, w x 1\nB 0-9 r x, w x 2", "x 1 2", "G-single"},
		{"long fork", "A 0-9 w x 1\nB 0-9 w y 1\nC 0-9 r x 1, r y\nD 0-9 r x, r y 1", "x 1, y 1", "G-nonadjacent"},
		{"stale read", "A 0-1 w x 1\nB 2-3 r x", "x 1", "in real time"},
		{"not monotonic", "A 0-9 w x 1\nB 1-2 r x 1\nC 3-4 r x", "x 1", "in real time"},
		{"stale among others", "A 0-1 w x 1\nB 2-3 w y 1\nC 4-5 r y 1\nD 6-7 r x", "x 1, y 1", "in real time"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := checkLists(parseHistory(t, c.history), lists(c.final))
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestCheckerIsFastEnough: a round's history is checked between rounds.
func TestCheckerIsFastEnough(t *testing.T) {
	var txns []*txn
	final := map[int][]int{}
	at := time.Now()
	for i := range 20000 {
		key := i % 8
		final[key] = append(final[key], i)
		txns = append(txns, &txn{id: i, began: at.Add(time.Duration(3*i) * time.Millisecond), ended: at.Add(time.Duration(3*i+20) * time.Millisecond),
			ops: []listOp{{key: key, read: true, list: final[key][:len(final[key])-1]}, {key: key, value: i}}})
	}
	if got := checkLists(txns, final); got != "" {
		t.Error(got)
	}
}
