package colstore

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Snapshot is a transaction snapshot as pg_current_snapshot() prints it: every
// transaction below Xmin has ended, none at or above Xmax is visible, and those
// in Xip were running. Xip holds top-level transactions only, ascending
// (src/backend/utils/adt/xid8funcs.c). The zero Snapshot sees nothing.
type Snapshot struct {
	Xmin, Xmax uint64
	Xip        []uint64
}

// ParseSnapshot reads "xmin:xmax:xip,xip,...". It is as strict as Postgres'
// parse_snapshot: 0 < xmin <= xmax, xip ascending within [xmin, xmax).
func ParseSnapshot(text string) (Snapshot, error) {
	bad := func(what string) (Snapshot, error) {
		return Snapshot{}, fmt.Errorf("snapshot %q: %s", text, what)
	}
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return bad("want xmin:xmax:xip_list")
	}
	var s Snapshot
	var err error
	if s.Xmin, err = strconv.ParseUint(parts[0], 10, 64); err != nil || s.Xmin == 0 {
		return bad("bad xmin")
	}
	if s.Xmax, err = strconv.ParseUint(parts[1], 10, 64); err != nil || s.Xmax < s.Xmin {
		return bad("bad xmax")
	}
	if parts[2] == "" {
		return s, nil
	}
	last := uint64(0)
	for _, p := range strings.Split(parts[2], ",") {
		xid, err := strconv.ParseUint(p, 10, 64)
		if err != nil || xid < s.Xmin || xid >= s.Xmax || xid < last {
			return bad("bad xip")
		}
		if xid != last { // Postgres drops duplicates, too
			s.Xip = append(s.Xip, xid)
		}
		last = xid
	}
	return s, nil
}

// String returns the text form.
func (a Snapshot) String() string {
	b := strconv.AppendUint(nil, a.Xmin, 10)
	b = strconv.AppendUint(append(b, ':'), a.Xmax, 10)
	b = append(b, ':')
	for i, x := range a.Xip {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, x, 10)
	}
	return string(b)
}

// Sees reports whether the effects of the committed top-level transaction xid
// are visible.
func (a Snapshot) Sees(xid uint64) bool {
	if xid >= a.Xmax {
		return false
	}
	if len(a.Xip) == 0 || xid < a.Xip[0] || xid > a.Xip[len(a.Xip)-1] {
		return true
	}
	_, running := slices.BinarySearch(a.Xip, xid)
	return !running
}

// ContainedIn reports whether b sees every transaction that a sees. It is exact:
// where it says false, there is an xid, of whatever fate, that a sees and b does
// not.
func (a Snapshot) ContainedIn(b Snapshot) bool {
	// a sees [0, a.Xmax) without a.Xip; b misses [b.Xmax, inf) and b.Xip.
	// So every xid in [b.Xmax, a.Xmax) must be in a.Xip ...
	if a.Xmax > b.Xmax {
		i, _ := slices.BinarySearch(a.Xip, b.Xmax)
		if uint64(len(a.Xip)-i) != a.Xmax-b.Xmax { // Xip has no duplicates
			return false
		}
	}
	// ... and so must every xid of b.Xip that is below a.Xmax.
	for _, x := range b.Xip {
		if a.Sees(x) {
			return false
		}
	}
	return true
}

// meet returns the snapshot that sees what both see.
func (a Snapshot) meet(b Snapshot) Snapshot {
	m := Snapshot{Xmin: min(a.Xmin, b.Xmin), Xmax: min(a.Xmax, b.Xmax)}
	m.Xip = slices.Concat(a.Xip, b.Xip)
	slices.Sort(m.Xip)
	m.Xip = slices.Compact(m.Xip)
	end, _ := slices.BinarySearch(m.Xip, m.Xmax)
	m.Xip = m.Xip[:end]
	return m
}
