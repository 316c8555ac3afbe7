package colstore

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"pgaccel/catalog"
	"pgaccel/compress"
	"pgaccel/vector"
)

// model is a table as a list of rows with the transactions that inserted and deleted
// them: what a reader sees is there for all to see. It also plays the server: its
// transactions become visible in another order than that of the stream, but wait for
// each other where they touch the same rows.
type model struct {
	rand  *rand.Rand
	meta  *catalog.Table
	parts []uint32
	rows  []*modelRow
	last  uint64          // xid given last
	seen  map[uint64]bool // visible transactions
	// blocked are parts truncated by a transaction that is not visible yet.
	blocked map[uint32]uint64
	cleared []uint64 // transactions that truncated
	nextKey int64
	free    []int64 // keys of rows whose delete is visible
}

type modelRow struct {
	part     uint32
	values   []any // by column: nil, int64, float64, string; the varbit as two words
	ins, del uint64
	key      int64
}

// modelMeta describes a table: i int8, f float8, j not copied, c and v text, k the key.
func modelMeta(identity string, parts int) *catalog.Table {
	m := meta()
	m.Columns = append(m.Columns, catalog.Column{Name: "k", Type: vector.TypeOf(vector.Int8)},
		catalog.Column{Name: "u", Unsupported: "varbit"}, catalog.Column{Name: "kt", Type: m.Columns[3].Type})
	for i := range m.Columns {
		m.Columns[i].AttNum = int16(i + 1)
	}
	switch identity {
	case "int":
		m.Identity = []int{5}
	case "text":
		m.Identity = []int{5, 7}
	case "hash":
		m.Identity = []int{6}
	case "full":
		m.IdentityFull = true
	}
	for p := range parts {
		m.Parts = append(m.Parts, catalog.Part{OID: uint32(100 + p)})
	}
	return m
}

func newModel(seed uint64, meta *catalog.Table) *model {
	m := &model{rand: rand.New(rand.NewPCG(seed, 77)), meta: meta, seen: map[uint64]bool{}, blocked: map[uint32]uint64{}, last: 100}
	m.parts = []uint32{meta.OID}
	if meta.Parts != nil {
		m.parts = nil
		for _, p := range meta.Parts {
			m.parts = append(m.parts, p.OID)
		}
	}
	return m
}

func (m *model) newRow(part uint32) *modelRow {
	r := &modelRow{part: part, values: make([]any, len(m.meta.Columns))}
	if m.meta.IdentityFull {
		// Few different rows.
		r.key = m.rand.Int64N(5)
		r.values[0] = m.rand.Int64N(2)
		if m.rand.IntN(2) == 0 {
			r.values[0] = nil
		}
		r.values[1], r.values[3], r.values[4] = math.NaN(), "x", nil
		r.values[5], r.values[7] = r.key, fmt.Sprint("k", r.key)
		return r
	}
	for i, v := range randomRow(m.rand) {
		if s, ok := v.(string); ok && len(s) > 100 && m.rand.IntN(20) > 0 {
			v = s[:60]
		}
		r.values[i] = v
	}
	if len(m.free) > 0 && m.rand.IntN(2) == 0 {
		k := m.rand.IntN(len(m.free))
		r.key = m.free[k]
		m.free = slices.Delete(m.free, k, k+1)
	} else {
		m.nextKey++
		r.key = m.nextKey
	}
	m.setKey(r)
	return r
}

func (m *model) setKey(r *modelRow) {
	r.values[5], r.values[7] = r.key, fmt.Sprint("key ", r.key)
	if m.meta.HashIdentity() {
		r.values[5], r.values[7] = r.key%3, "same"
		r.values[6] = [2]uint64{uint64(r.key), 5}
	}
}

// image makes what the stream would send of a row.
func (m *model) image(r *modelRow, keyOnly bool) *Row {
	row := NewRow(m.meta)
	for i, v := range r.values {
		if keyOnly && !m.meta.IdentityFull && !slices.Contains(m.meta.Identity, i) {
			continue
		}
		switch v := v.(type) {
		case nil:
			if m.meta.Columns[i].Unsupported == "" {
				row.State[i] = ColumnNull
			}
		case int64:
			row.State[i], row.Int[i] = ColumnValue, v
		case float64:
			row.State[i], row.Int[i] = ColumnValue, int64(math.Float64bits(v))
		case string:
			row.State[i], row.Text[i] = ColumnValue, []byte(v)
		case [2]uint64:
			row.Identity = v
		}
	}
	return row
}

// String is the row as tests compare it.
func (r *modelRow) String() string {
	var b strings.Builder
	for _, v := range r.values {
		switch v := v.(type) {
		case float64:
			fmt.Fprintf(&b, "%x|", math.Float64bits(v))
		case [2]uint64:
			fmt.Fprintf(&b, "%d,%d|", v[0], v[1])
		case nil:
			b.WriteString("-|")
		default:
			fmt.Fprintf(&b, "%v|", v)
		}
	}
	return b.String()
}

// snapshot is what the server says now.
func (m *model) snapshot() Snapshot {
	s := Snapshot{Xmin: m.last + 1, Xmax: m.last + 1}
	for x := uint64(101); x <= m.last; x++ {
		if !m.seen[x] {
			s.Xip = append(s.Xip, x)
		}
	}
	if len(s.Xip) > 0 {
		s.Xmin = s.Xip[0]
		if m.rand.IntN(2) == 0 && s.Xip[len(s.Xip)-1] == s.Xmax-1 {
			s.Xmax, s.Xip = s.Xmax-1, s.Xip[:len(s.Xip)-1] // the same in other words
		}
	}
	return s
}

// at returns the rows that a snapshot sees, sorted.
func (m *model) at(s Snapshot) []string {
	out := []string{}
	for _, r := range m.rows {
		if s.Sees(r.ins) && (r.del == 0 || !s.Sees(r.del)) {
			out = append(out, r.String())
		}
	}
	sort.Strings(out)
	return out
}

// show makes some transactions visible.
func (m *model) show(n int) {
	for x := uint64(101); x <= m.last && n > 0; x++ {
		if !m.seen[x] && m.rand.IntN(3) > 0 {
			m.seen[x] = true
			n--
			for part, by := range m.blocked {
				if by == x {
					delete(m.blocked, part)
				}
			}
			if m.meta.IdentityFull {
				continue
			}
			taken := map[int64]bool{}
			for _, r := range m.rows {
				taken[r.key] = taken[r.key] || r.del == 0 || !m.seen[r.del]
			}
			for _, r := range m.rows {
				if r.del == x && !taken[r.key] {
					m.free = append(m.free, r.key)
					taken[r.key] = true
				}
			}
		}
	}
}

// transaction runs random changes on the relation and the model. The error is the
// relation's.
func (m *model) transaction(rel *Relation, changes int) error {
	m.last++
	xid := m.last
	var live []*modelRow // rows that it may touch: visible, or its own, and not deleted
	for _, r := range m.rows {
		if r.del == 0 && m.seen[r.ins] {
			live = append(live, r)
		}
	}
	pick := func() *modelRow {
		for range 20 {
			if len(live) == 0 {
				return nil
			}
			k := m.rand.IntN(len(live))
			if r := live[k]; m.blocked[r.part] == 0 || m.blocked[r.part] == xid {
				live = slices.Delete(live, k, k+1)
				return r
			}
		}
		return nil
	}
	for range changes {
		part := m.parts[m.rand.IntN(len(m.parts))]
		open := m.blocked[part] == 0 || m.blocked[part] == xid
		switch what := m.rand.IntN(100); {
		case what < 45 && open:
			r := m.newRow(part)
			r.ins = xid
			if err := rel.Insert(part, m.image(r, false)); err != nil {
				return err
			}
			m.rows, live = append(m.rows, r), append(live, r)
		case what < 70:
			old := pick()
			if old == nil {
				continue
			}
			r := m.newRow(old.part)
			r.ins = xid
			var image *Row
			if m.rand.IntN(3) > 0 && !m.meta.IdentityFull {
				m.free = append(m.free, r.key)
				if r.key == m.nextKey {
					m.free = m.free[:len(m.free)-1]
					m.nextKey--
				}
				r.key = old.key // the key stays
				m.setKey(r)
			}
			keep := m.rand.IntN(2) == 0
			if keep {
				r.values[4] = old.values[4]
			}
			image = m.image(r, false)
			if keep {
				image.State[4], image.Text[4] = ColumnUnchanged, nil
			}
			var before *Row
			if r.key != old.key || m.meta.IdentityFull || m.rand.IntN(4) == 0 {
				before = m.image(old, true)
			}
			old.del = xid
			if err := rel.Update(old.part, before, image); err != nil {
				return err
			}
			m.rows, live = append(m.rows, r), append(live, r)
		case what < 99:
			old := pick()
			if old == nil {
				continue
			}
			old.del = xid
			if err := rel.Delete(old.part, m.image(old, true)); err != nil {
				return err
			}
		case m.rand.IntN(4) == 0 && open:
			// An exclusive lock: everybody before must be seen.
			waits := false
			for _, r := range m.rows {
				if r.part == part && (r.ins != xid && !m.seen[r.ins] || r.del != 0 && r.del != xid && !m.seen[r.del]) {
					waits = true
				}
			}
			if waits {
				continue
			}
			if err := rel.Truncate(part); err != nil {
				return err
			}
			for _, r := range m.rows {
				if r.part == part && r.del == 0 {
					r.del = xid
				}
			}
			live = slices.DeleteFunc(live, func(r *modelRow) bool { return r.part == part })
			m.blocked[part] = xid
			m.cleared = append(m.cleared, xid)
		}
	}
	return rel.Commit(xid, xid*10)
}

// rowsOf reads a table as the model writes rows, and checks what must hold of any.
func rowsOf(t testing.TB, table *Table) []string {
	t.Helper()
	out := []string{}
	hash := table.Meta.HashIdentity()
	for _, seg := range table.Segments {
		if seg.Rows == 0 {
			t.Fatal("an empty segment")
		}
		if seg.Live != nil {
			if len(seg.Live) != (seg.Rows+63)/64 {
				t.Fatalf("%d words of live bits for %d rows", len(seg.Live), seg.Rows)
			}
			if seg.Rows%64 != 0 && seg.Live[len(seg.Live)-1]>>(seg.Rows%64) != 0 {
				t.Fatal("live bits past the end")
			}
			if n := count(seg.Live); n == 0 || n == seg.Rows {
				t.Fatalf("a bitmap with %d of %d rows live", n, seg.Rows)
			}
		}
		values := make([][]int64, len(seg.Columns))
		for i := range seg.Columns {
			c := &seg.Columns[i]
			if c.Data == nil {
				continue
			}
			values[i] = make([]int64, seg.Rows)
			c.Data.Decode(values[i], 0)
			z := zoneOf(values[i], c.Nulls, c.Nulls != nil, i < len(table.Meta.Columns) && table.Meta.Columns[i].Type.Kind.IsFloat())
			if z.lo != c.Min || z.hi != c.Max || z.nulls != c.NullCount || z.nulls == 0 && c.Nulls != nil {
				t.Fatalf("column %d: zone map [%d, %d], %d nulls; want %+v", i, c.Min, c.Max, c.NullCount, z)
			}
			if i < len(table.Dicts) && table.Dicts[i] != nil {
				for _, v := range values[i] {
					if v != 0 && (v < 0 || v >= int64(table.Dicts[i].Len())) {
						t.Fatalf("column %d holds code %d of %d", i, v, table.Dicts[i].Len())
					}
				}
			}
		}
		for row := range seg.Rows {
			if seg.Live != nil && !has(seg.Live, row) {
				continue
			}
			r := modelRow{values: make([]any, len(table.Meta.Columns))}
			for i := range table.Meta.Columns {
				c := &seg.Columns[i]
				if c.Data == nil || c.Nulls != nil && has(c.Nulls, row) {
					continue
				}
				switch v := values[i][row]; {
				case table.Dicts[i] != nil:
					r.values[i] = table.Dicts[i].At(v)
				case table.Meta.Columns[i].Type.Kind.IsFloat():
					r.values[i] = math.Float64frombits(uint64(v))
				default:
					r.values[i] = v
				}
			}
			if hash {
				n := len(table.Meta.Columns)
				r.values[6] = [2]uint64{uint64(values[n][row]), uint64(values[n+1][row])}
			}
			out = append(out, r.String())
		}
	}
	if int64(len(out)) != table.Rows {
		t.Fatalf("%d rows, the table says %d", len(out), table.Rows)
	}
	sort.Strings(out)
	return out
}

// clock is a clock that tests move.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// start copies n rows, seen by transaction 100, and publishes them.
func (m *model) start(t testing.TB, s *Store, n int) *Relation {
	l := s.NewLoader(m.meta)
	for _, part := range m.parts {
		w := l.NewPartWriter(part)
		for range n {
			r := m.newRow(part)
			r.ins = 100
			m.rows = append(m.rows, r)
			for i, v := range r.values {
				switch v := v.(type) {
				case nil:
					if m.meta.Columns[i].Unsupported == "" {
						w.Null(i)
					}
				case int64:
					w.Int(i, v)
				case float64:
					w.Int(i, int64(math.Float64bits(v)))
				case string:
					w.Text(i, []byte(v))
				case [2]uint64:
					w.Identity(v)
				}
			}
			if err := w.EndRow(); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	base, err := l.Finish()
	if err != nil {
		t.Fatal(err)
	}
	base.Snapshot = Snapshot{Xmin: 101, Xmax: 101}
	m.seen[100] = true
	rel := s.NewRelation(base)
	s.Publish(rel)
	return rel
}

// expectation is a snapshot, and what it sees.
type expectation struct {
	snap Snapshot
	rows []string
	must bool // be readable
}

func (e expectation) check(t testing.TB, s *Store, oid uint32) bool {
	t.Helper()
	table, err := s.View(oid, e.snap)
	if err != nil {
		if !errors.Is(err, ErrSnapshot) || e.must {
			t.Errorf("View(%v): %v", e.snap, err)
		}
		return false
	}
	defer table.Release()
	got := rowsOf(t, table)
	if !slices.Equal(got, e.rows) {
		t.Errorf("View(%v): %d rows, want %d\n%s", e.snap, len(got), len(e.rows), difference(got, e.rows))
	}
	return true
}

func difference(got, want []string) string {
	counts := map[string]int{}
	for _, r := range got {
		counts[r]++
	}
	for _, r := range want {
		counts[r]--
	}
	var b strings.Builder
	for r, n := range counts {
		if n != 0 && b.Len() < 1000 {
			if len(r) > 100 {
				r = r[:40] + "..." + r[len(r)-50:]
			}
			fmt.Fprintf(&b, "%+d %s\n", n, r)
		}
	}
	return b.String()
}

// TestRelation runs random transactions, visible in another order than they come,
// beside readers of all snapshots that there were, and folding at any moment.
func TestRelation(t *testing.T) {
	for _, c := range []struct {
		identity string
		parts    int
		codec    compress.Codec
		limit    int64
	}{
		{"int", 0, compress.CodecAuto, 0}, {"text", 2, compress.CodecFOR64, 0}, {"hash", 0, compress.CodecPlain, 0},
		{"full", 0, compress.CodecAuto, 0}, {"full", 3, compress.CodecAuto, 0}, {"int", 3, compress.CodecLookup, 3000},
		{"int", 0, compress.CodecDFOR, 0}, {"text", 0, compress.CodecRFOR, 0}, {"full", 2, compress.CodecDFOR64, 0}, {"int", 2, compress.CodecALP, 0},
	} {
		seeds := uint64(4)
		if testing.Short() {
			seeds = 2
		}
		for seed := range seeds {
			t.Run(fmt.Sprintf("%s/%d/%d", c.identity, c.parts, seed), func(t *testing.T) {
				t.Parallel()
				runModel(t, seed, modelMeta(c.identity, c.parts), Options{SegmentRows: 1024, Codec: c.codec, HistoryLimit: c.limit, PackedMin: int(seed % 2)})
			})
		}
	}
}

func runModel(t *testing.T, seed uint64, meta *catalog.Table, o Options) {
	time0 := &clock{at: time.Unix(1e9, 0)}
	o.now, o.manual = time0.now, true
	s := New(o)
	defer s.Close()
	m := newModel(seed, meta)
	rel := m.start(t, s, []int{0, 1, 63, 64, 65, 1023, 1024, 1025}[seed*2%8+m.rand.Uint64N(2)])

	var wg sync.WaitGroup
	work := make(chan expectation, 100)
	for range 2 {
		wg.Go(func() {
			for e := range work {
				e.check(t, s, meta.OID)
			}
		})
	}
	type pinned struct {
		expectation
		release func()
	}
	var pins []pinned
	var old []expectation
	held := map[*Table][]string{}
	read, refused := 0, 0
	rounds := 120
	if testing.Short() {
		rounds = 50
	}
	names := newNumbers()
	var newest *Table // as of some round; released
	var newestRows []string
	sames := 0
	for round := range rounds {
		if newest == nil || m.rand.IntN(2) == 0 {
			if table, st := s.Get(meta.OID); st == StateReady {
				newest, newestRows = table, rowsOf(t, table)
				table.Release()
			}
		}
		changes := m.rand.IntN(8)
		if m.rand.IntN(30) == 0 {
			changes = m.rand.IntN(1500)
		}
		if err := m.transaction(rel, changes); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		for i := range pins {
			for _, x := range m.cleared {
				pins[i].must = pins[i].must && pins[i].snap.Sees(x)
			}
		}
		m.show(m.rand.IntN(4))
		snap := m.snapshot()
		e := expectation{snap: snap, rows: m.at(snap), must: !meta.IdentityFull && len(m.blocked) == 0}
		if !e.check(t, s, meta.OID) {
			refused++
		}
		if table, err := s.View(meta.OID, snap); err == nil {
			if round%2 == 0 {
				names.table(t, table)
			}
			table.Release()
		}
		if s.Same(newest.Version(), snap) {
			sames++
			e.must = true
			e.check(t, s, meta.OID)
			if !slices.Equal(newestRows, e.rows) {
				t.Errorf("Same(%v): %d rows, want %d\n%s", snap, len(newestRows), len(e.rows), difference(newestRows, e.rows))
			}
		}
		if x := old; len(x) > 0 {
			if o := x[m.rand.IntN(len(x))]; s.Same(newest.Version(), o.snap) && !slices.Equal(newestRows, o.rows) {
				t.Errorf("Same(%v), of before: %d rows, want %d\n%s", o.snap, len(newestRows), len(o.rows), difference(newestRows, o.rows))
			}
		}
		read++
		e.must = false
		old = append(old, e)
		select {
		case work <- old[m.rand.IntN(len(old))]:
		default:
		}
		switch m.rand.IntN(12) {
		case 0, 1:
			s.Observe(snap, 0, time0.now())
			time0.step(time.Duration(m.rand.IntN(300)) * time.Millisecond)
		case 2, 3:
			s.behind.work()
		case 4:
			if o.HistoryLimit == 0 {
				e.must = !meta.IdentityFull && len(m.blocked) == 0
			}
			pins = append(pins, pinned{e, s.Pin(snap)})
		case 5:
			if len(pins) > 0 {
				k := m.rand.IntN(len(pins))
				pins[k].check(t, s, meta.OID)
				pins[k].release()
				pins = slices.Delete(pins, k, k+1)
			}
		case 6:
			if table, err := s.View(meta.OID, snap); err == nil {
				if held[table] != nil {
					table.Release()
				}
				held[table] = e.rows
			}
		case 7:
			for table, rows := range held {
				if got := rowsOf(t, table); !slices.Equal(got, rows) {
					t.Errorf("a held version changed:\n%s", difference(got, rows))
				}
				table.Release()
				delete(held, table)
			}
		case 8:
			again := *rel.Meta()
			again.Name, again.Fingerprint = fmt.Sprint("t", round), "new"
			if !rel.Redefine(&again) {
				t.Error("Redefine refused a rename")
			}
		}
		if t.Failed() {
			break
		}
	}
	if sames == 0 {
		t.Error("the newest version was never what a snapshot saw")
	}
	close(work)
	wg.Wait()
	for table := range held {
		table.Release()
	}
	if !meta.IdentityFull && refused > rounds/2 {
		t.Errorf("%d of %d snapshots were refused", refused, read)
	}
	all, _ := s.Get(meta.OID)
	want := m.at(Snapshot{Xmax: m.last + 1})
	if got := rowsOf(t, all); !slices.Equal(got, want) {
		t.Errorf("Get: %d rows, want %d", len(got), len(want))
	}
	all.Release()
	if st := s.Statuses()[0]; st.Rows != int64(len(want)) {
		t.Errorf("Status says %d rows, want %d", st.Rows, len(want))
	}
	for _, p := range pins {
		p.release()
	}
	// All visible and folded, nothing is left of the history.
	for len(m.seen) < int(m.last)-99 {
		m.show(1000)
	}
	s.Observe(m.snapshot(), 0, time0.now())
	time0.step(time.Second)
	s.behind.work()
	if bytes, commits := s.History(); bytes != 0 || commits != 0 {
		t.Errorf("%d commits of %d bytes are left", commits, bytes)
	}
	s.Remove(meta.OID)
	if used, _ := s.Usage(); used != 0 {
		t.Errorf("%d bytes lost", used)
	}
}
