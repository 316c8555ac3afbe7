package olap

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"pgaccel/colstore"
	"pgaccel/gpu/program"
	"pgaccel/plan"
	"pgaccel/vector"
)

// lookupCase is a lookup to be made: of n rows whose keys are some of those in [lo, hi].
type lookupCase struct {
	name   string
	hi     int64 // the greatest key; the least is -3
	outer  int64 // the greatest outer key
	twice  bool  // keys occur several times
	nulls  bool  // some keys are null
	outs   int
	kind   plan.JoinKind
	exists bool
	dedupe bool
	two    bool  // a second key, of two values
	rows   int64 // of the table that is joined to
	device bool  // makes the hash table
}

// TestLookups compares lookups, of one partition and of many, with a map from keys to rows.
func TestLookups(t *testing.T) {
	cases := []lookupCase{
		{name: "set", hi: 1 << 18, outer: 1 << 18},
		{name: "set with nulls", hi: 1 << 18, outer: 1 << 17, nulls: true},
		{name: "exists", hi: 1 << 9, outer: 1 << 10, twice: true, exists: true},
		{name: "array", hi: 1 << 18, outer: 1 << 18, outs: 2},
		{name: "left array", hi: 1 << 18, outer: 1 << 19, outs: 1, kind: plan.Left, nulls: true},
		{name: "distinct outputs", hi: 1 << 18, outer: 1 << 18, outs: 2, dedupe: true},
		{name: "hash", hi: 1 << 50, outer: 1 << 50, outs: 1, nulls: true},
		{name: "hash with a set", hi: 1 << 23, outer: 1 << 24, outs: 1, nulls: true},
		{name: "set for many rows", hi: 1 << 23, outer: 1 << 24, rows: 1 << 25},
		{name: "hash of a device", hi: 1 << 17, outer: 1 << 18, outs: 1, nulls: true, device: true},
		{name: "left hash of a device", hi: 1 << 17, outer: 1 << 18, outs: 2, kind: plan.Left, device: true},
		{name: "twice for a device", hi: 1 << 10, outer: 1 << 10, twice: true, outs: 1, kind: plan.Left, device: true},
		{name: "left hash", hi: 1 << 50, outer: 1 << 40, outs: 2, kind: plan.Left},
		{name: "two keys", hi: 1 << 18, outer: 1 << 18, outs: 1, two: true},
		{name: "many", hi: 1 << 10, outer: 1 << 10, twice: true, outs: 1, nulls: true},
		{name: "left many", hi: 1 << 10, outer: 1 << 11, twice: true, outs: 1, kind: plan.Left},
		{name: "many anywhere", hi: 1 << 50, outer: 1 << 50, twice: true, outs: 1},
		{name: "twice", hi: 1 << 10, outer: 1 << 10, twice: true, outs: 1, kind: plan.Left},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for _, n := range []int{0, 1, 63, 64, 127, 128, 129, 511, 512, 513, buildParted + 1, 2*buildChunk + 1} {
				if testing.Short() && n > 2*buildChunk {
					continue
				}
				for _, eager := range []bool{false, true} {
					if eager && n > 1<<10 { // it is what these are without
						continue
					}
					c.check(t, n, eager)
				}
			}
		})
	}
}

func (c *lookupCase) check(t *testing.T, n int, eager bool) {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(n), 7))
	lo := int64(-3)
	many := c.twice && !c.exists && !strings.HasPrefix(c.name, "twice")
	if c.device {
		hashesAll(t)
	}
	// Distinct keys, or some of a few.
	keys := make([]int64, n)
	seen := map[int64]bool{}
	for i := range keys {
		for {
			keys[i] = lo + r.Int64N(c.hi-lo+1)
			if c.twice && c.hi > 1<<20 && i > 0 && r.IntN(3) > 0 {
				keys[i] = keys[r.IntN(i)]
			}
			if !seen[keys[i]] || c.twice {
				break
			}
		}
		seen[keys[i]] = true
	}
	cols := []vec{{v: keys}}
	if c.nulls {
		cols[0].nulls = make([]uint8, n)
		for i := range keys {
			cols[0].nulls[i] = uint8(b2i(r.IntN(5) == 0))
		}
	}
	nodes := []*node{{t: vector.TypeOf(vector.Int8), lo: lo, hi: c.hi}}
	b := &probe{join: plan.StarJoin{Kind: c.kind, Key: []int{0}, Exists: c.exists}, lut: &lookup{}, dedupe: c.dedupe || c.outs == 0, many: many}
	b.outer = []*node{{t: vector.TypeOf(vector.Int8), lo: lo, hi: c.outer}}
	b.key, b.strides = b.outer[0], []int64{1}
	second := make([]int64, n)
	if c.two {
		for i := range second {
			second[i] = 5 + r.Int64N(2)
		}
		cols, nodes = append(cols, vec{v: second}), append(nodes, &node{t: vector.TypeOf(vector.Int8), lo: 5, hi: 6})
		b.join.Key = append(b.join.Key, 1)
		b.outer = append(b.outer, &node{t: vector.TypeOf(vector.Int8), lo: 5, hi: 6})
		width := c.outer - lo + 1
		b.strides = append(b.strides, width)
		b.key = &node{lo: 0, hi: 2*width - 1}
	}
	for k := range c.outs {
		out := vec{v: make([]int64, n), nulls: make([]uint8, n)}
		for i := range out.v {
			out.v[i] = r.Int64N(40)
			out.nulls[i] = uint8(b2i(r.IntN(7) == 0))
		}
		cols, nodes = append(cols, out), append(nodes, &node{t: vector.TypeOf(vector.Int8), lo: 0, hi: 39, nullable: true})
		b.wanted = append(b.wanted, plan.Column{Table: 1, Column: k, T: vector.TypeOf(vector.Int8)})
	}
	b.rows = &rows{n: n, cols: cols}
	x := &execution{ctx: context.Background(), opt: Options{Workers: 3, Eager: eager}, memory: new(atomic.Int64), room: 1 << 40}
	b.child = &pipeline{x: x, collected: nodes, tab: &colstore.Table{Rows: int64(n)}}
	x.q = &plan.Star{Grouped: c.device}
	p := &pipeline{x: x, tab: &colstore.Table{Rows: c.rows}, device: c.device}
	p.c, p.probes = &compiler{p: p}, []*probe{b}
	err := p.makeLookup(b)

	// The reference: rows by key.
	want := map[int64][]int{}
	unique := true
	for i, k := range keys {
		if k > c.outer || c.nulls && cols[0].nulls[i] != 0 {
			continue
		}
		if c.two {
			k = k - lo + (second[i]-5)*b.strides[1]
		}
		unique = unique && want[k] == nil
		want[k] = append(want[k], i)
	}
	what := fmt.Sprintf("%d rows, eager %v", n, eager)
	if !many && !c.exists && !unique {
		if err == nil {
			t.Fatalf("%s: keys that occur twice were taken", what)
		}
		return
	}
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if x.memory.Load() != b.taken {
		t.Errorf("%s: %d bytes are taken, for a lookup of %d", what, x.memory.Load(), b.taken)
	}
	l := b.lut
	if c.rows > 0 && n > 0 && l.kind != program.LookupBits {
		t.Errorf("%s: a lookup of kind %d", what, l.kind)
	}
	if c.device {
		if l.Keys == nil && len(want) > 0 && l.keyHi-l.keyLo < lookupBitsSpread*int64(len(want)) {
			t.Errorf("%s: no hash table is left to the device", what)
		}
		if err := p.makeHashes(); err != nil || l.Keys != nil { // as if the device did not
			t.Fatal(what, err)
		}
	}
	row := func(e uint32) string { // the outputs of an entry
		s := ""
		for k := range l.outs {
			if l.outs[k].Nulls != nil && l.outs[k].Nulls[e] != 0 {
				s += " null"
			} else {
				s += fmt.Sprint(" ", l.outs[k].Values[e])
			}
		}
		return s
	}
	rowOf := func(i int) string {
		s := ""
		for _, out := range cols[len(b.join.Key):] {
			if out.nulls[i] != 0 {
				s += " null"
			} else {
				s += fmt.Sprint(" ", out.v[i])
			}
		}
		return s
	}
	nothing := ""
	for range c.outs {
		nothing += " null"
	}
	ask := slices.Clone(keys)
	for range 50 {
		ask = append(ask, lo+r.Int64N(c.outer-lo+1))
	}
	var asked []int64
	for i, k := range ask {
		if k > c.outer {
			continue
		}
		if c.two {
			if k -= lo; i < n {
				k += (second[i] - 5) * b.strides[1]
			}
		}
		e, found := l.Find(l.kind, k)
		asked = append(asked, k)
		if l.left && (!found || want[k] == nil) { // an array has the entry of the nulls
			e, found = l.Null, true
		}
		rows := want[k]
		switch {
		case found != (rows != nil || l.left):
			t.Fatalf("%s: key %d: found %v, want %v", what, k, found, rows)
		case !found || c.outs == 0:
		case many:
			var got, expected []string
			for _, e := range l.many.entry[l.many.first[e]:l.many.first[e+1]] {
				got = append(got, row(e))
			}
			for _, i := range rows {
				expected = append(expected, rowOf(i))
			}
			if rows == nil {
				expected = []string{nothing}
			}
			if !slices.Equal(got, expected) {
				t.Fatalf("%s: key %d: %q, want %q", what, k, got, expected)
			}
		default:
			expected := nothing
			if rows != nil {
				expected = rowOf(rows[0])
			}
			if got := row(e); got != expected {
				t.Fatalf("%s: key %d: %s, want %s", what, k, got, expected)
			}
		}
	}
	for k := range want {
		if l.set.Size > 0 && l.set.Bits[(k-l.set.Lo)>>6]>>(uint(k-l.set.Lo)&63)&1 == 0 {
			t.Fatalf("%s: the set lacks key %d", what, k)
		}
	}
	if c.name == "hash with a set" && n > buildParted && (l.kind != program.LookupHash || l.set.Size == 0) {
		t.Errorf("%s: no set beside a hash table", what)
	}
	for range 20 {
		lo := r.Int64N(c.hi + 3)
		hi := lo + r.Int64N(c.hi/int64(n+1)+1)
		some := l.few == nil
		for k := range want {
			some = some || k >= lo && k <= hi
		}
		if l.misses(lo, hi) == some {
			t.Fatalf("%s: a key in %d..%d: %v", what, lo, hi, some)
		}
	}
	entries, next := make([]uint32, tileRows), make([]uint16, tileRows)
	for ; len(asked) > 0; asked = asked[min(len(asked), tileRows):] {
		keys := asked[:min(len(asked), tileRows)]
		sel := make([]uint16, len(keys))
		for i := range sel {
			sel[i] = uint16(i)
		}
		stay := next[:l.run(vec{v: keys}, sel, entries, next)]
		for i, k := range keys {
			e, found := l.Find(l.kind, k)
			met := len(stay) > 0 && stay[0] == uint16(i)
			if met {
				stay = stay[1:]
			}
			if found && l.kind != program.LookupBits {
				entries[i] = 0
				l.enter([]int64{k}, []uint16{uint16(i)}, entries, make([]uint16, tileRows))
			}
			if met != (found || l.left) || found && l.kind != program.LookupBits && entries[i] != e {
				t.Fatalf("%s: key %d: stays %v with entry %d, want %v, %d", what, k, met, entries[i], found, e)
			}
		}
	}
}
