package colstore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgaccel/compress"
)

func reopen(t *testing.T, dir string) *Disk {
	t.Helper()
	d, err := OpenDisk(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// saveView saves the table as the snapshot sees it.
func saveView(t *testing.T, d *Disk, s *Store, oid uint32, snap Snapshot) {
	t.Helper()
	table, err := s.View(oid, snap)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Release()
	if err := d.Save(&Checkpoint{Instance: "i", Snapshot: snap.String(), Position: 7}, []*Table{table}); err != nil {
		t.Fatal(err)
	}
}

// TestCheckpoint saves a changing table, loads it in another store, and goes on with
// changes there, several times.
func TestCheckpoint(t *testing.T) {
	for i, identity := range []string{"int", "text", "hash", "full"} {
		for _, n := range []int{0, 1, 64, 1025} {
			t.Run(fmt.Sprint(identity, n), func(t *testing.T) {
				t.Parallel()
				meta := modelMeta(identity, i%3)
				dir := t.TempDir()
				o := Options{SegmentRows: 1024, PackedMin: n % 2, manual: true, now: (&clock{at: time.Unix(1e9, 0)}).now}
				s := New(o)
				m := newModel(uint64(i*100+n), meta)
				rel := m.start(t, s, n)
				for round := range 5 {
					for range 12 {
						if err := m.transaction(rel, m.rand.IntN(200)); err != nil {
							t.Fatal(err)
						}
						m.show(m.rand.IntN(3))
						if m.rand.IntN(4) == 0 {
							s.Observe(m.snapshot(), 0, o.now())
							s.behind.work()
						}
					}
					d := reopen(t, dir)
					// What a snapshot sees while others are under way ...
					some := m.snapshot()
					if _, err := s.View(meta.OID, some); err == nil {
						saveView(t, d, s, meta.OID, some)
						loadAndCheck(t, d, o, some, m.at(some))
					}
					// ... and all, to go on with.
					m.showAll()
					all := m.snapshot()
					saveView(t, d, s, meta.OID, all)
					d.Close()
					s.Close()
					s = New(o)
					d = reopen(t, dir)
					table, err := d.LoadTable(s, &d.Last().Tables[0])
					if err != nil {
						t.Fatal(round, err)
					}
					rel = s.NewRelation(table)
					s.Publish(rel)
					expectation{all, m.at(all), true}.check(t, s, meta.OID)
					// What was loaded is saved again by the same Disk, which writes only what has
					// changed since.
					for range 3 {
						if err := m.transaction(rel, m.rand.IntN(20)); err != nil {
							t.Fatal(err)
						}
					}
					m.showAll()
					again := m.snapshot()
					saveView(t, d, s, meta.OID, again)
					loadAndCheck(t, d, o, again, m.at(again))
					d.Close()
				}
				s.Close()
			})
		}
	}
}

func loadAndCheck(t *testing.T, d *Disk, o Options, snap Snapshot, want []string) {
	t.Helper()
	s := New(o)
	defer s.Close()
	table, err := d.LoadTable(s, &d.Last().Tables[0])
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(table.Snapshot.Xip, snap.Xip) {
		t.Errorf("snapshot %v, want %v", table.Snapshot, snap)
	}
	oid := table.Meta.OID
	s.Publish(s.NewRelation(table))
	expectation{snap, want, true}.check(t, s, oid)
	if got, _ := s.Get(oid); got.Rows != int64(len(want)) {
		t.Errorf("%d rows, want %d", got.Rows, len(want))
	} else {
		got.Release()
	}
}

// TestCheckpointWritesWhatIsNew: segments and dictionaries that have been saved are
// not written again, those that are gone are removed.
func TestCheckpointWritesWhatIsNew(t *testing.T) {
	dir := t.TempDir()
	s := New(Options{SegmentRows: 1024})
	defer s.Close()
	rows := make([]row, 5000)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range rows {
		rows[i] = randomRow(r)
	}
	s.Publish(s.NewRelation(load(t, s, rows, 1)))
	d := reopen(t, dir)
	snap := Snapshot{Xmin: 101, Xmax: 101}
	saveView(t, d, s, 7, snap)
	before := files(t, dir)
	if len(before) < 5+2 {
		t.Fatalf("files: %v", before)
	}
	saveView(t, d, s, 7, snap)
	if now := files(t, dir); !slices.Equal(now, before) {
		t.Errorf("saved again what was there: %v, then %v", before, now)
	}
	s.Publish(s.NewRelation(load(t, s, rows[:100], 1)))
	saveView(t, d, s, 7, snap)
	for _, f := range files(t, dir) {
		if slices.Contains(before, f) {
			t.Errorf("%s belongs to a table that is gone", f)
		}
	}
	if other, err := OpenDisk(dir); err == nil {
		other.Close()
		t.Error("two processes may use one folder")
	}
	if err := d.Forget(); err != nil || len(files(t, dir)) != 0 || d.Last() != nil {
		t.Errorf("Forget: %v, leaves %v", err, files(t, dir))
	}
}

// files lists the data files of a checkpoint.
func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if n := e.Name(); n != "lock" && n != "manifest" {
			names = append(names, n)
		}
	}
	return names
}

// TestCheckpointDamaged: whatever happens to the files, a checkpoint loads whole or
// not at all.
func TestCheckpointDamaged(t *testing.T) {
	dir := t.TempDir()
	o := Options{SegmentRows: 1024, manual: true}
	s := New(o)
	defer s.Close()
	meta := modelMeta("int", 0)
	m := newModel(9, meta)
	rel := m.start(t, s, 1500)
	for range 3 {
		if err := m.transaction(rel, 100); err != nil {
			t.Fatal(err)
		}
		m.show(10)
	}
	m.showAll()
	snap := m.snapshot()
	d := reopen(t, dir)
	saveView(t, d, s, meta.OID, snap)
	d.Close()
	r := rand.New(rand.NewPCG(3, 3))
	for _, name := range append(files(t, dir), "manifest") {
		path := filepath.Join(dir, name)
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for range 30 {
			bad := slices.Clone(good)
			switch r.IntN(4) {
			case 0:
				bad = bad[:r.IntN(len(bad))]
			case 1:
				bad = append(bad, 0)
			default:
				bad[r.IntN(len(bad))] ^= 1 << r.IntN(8)
			}
			if err := os.WriteFile(path, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			d := reopen(t, dir)
			if name == "manifest" {
				if d.Last() != nil {
					t.Errorf("a damaged manifest was read: %q", bad[max(0, len(bad)-20):])
				}
				d.Close()
				continue
			}
			other := New(o)
			if table, err := d.LoadTable(other, &d.Last().Tables[0]); err == nil {
				table.Release()
				t.Errorf("%s is damaged, and was loaded", name)
			} else if !errors.Is(err, compress.ErrCorrupt) {
				t.Errorf("%s: %v", name, err)
			}
			if used, _ := other.Usage(); used != 0 {
				t.Errorf("%s: %d bytes are lost", name, used)
			}
			other.Close()
			d.Close()
		}
		if err := os.WriteFile(path, good, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d = reopen(t, dir)
	loadAndCheck(t, d, o, snap, m.at(snap))
}

// TestCheckpointFullDisk: a Save that fails at any file leaves the last checkpoint,
// and nothing else.
func TestCheckpointFullDisk(t *testing.T) {
	dir := t.TempDir()
	o := Options{SegmentRows: 1024, manual: true}
	s := New(o)
	defer s.Close()
	meta := modelMeta("text", 0)
	m := newModel(11, meta)
	rel := m.start(t, s, 2000)
	first := m.snapshot()
	want := m.at(first)
	d := reopen(t, dir)
	saveView(t, d, s, meta.OID, first)
	before := files(t, dir)
	for range 3 {
		if err := m.transaction(rel, 50); err != nil {
			t.Fatal(err)
		}
	}
	m.showAll()
	second := m.snapshot()
	full := errors.New("no space left on device")
	for fail := 0; ; fail++ {
		n := 0
		d.writeFile = func(name string, b []byte) error {
			if n++; n > fail {
				os.WriteFile(name, b[:len(b)/2], 0o600)
				return full
			}
			return writeSynced(name, b)
		}
		table, err := s.View(meta.OID, second)
		if err != nil {
			t.Fatal(err)
		}
		err = d.Save(&Checkpoint{Snapshot: second.String()}, []*Table{table})
		table.Release()
		if err == nil {
			if fail < 3 {
				t.Errorf("only %d files were written", fail)
			}
			break
		}
		if !errors.Is(err, full) || !slices.Equal(files(t, dir), before) {
			t.Fatalf("after a failure at file %d: %v, %v", fail, err, files(t, dir))
		}
		d.Close()
		d = reopen(t, dir)
		loadAndCheck(t, d, o, first, want)
	}
	loadAndCheck(t, d, o, second, m.at(second))
}

// showAll makes all transactions visible.
func (m *model) showAll() {
	for len(m.seen) <= int(m.last-100) {
		m.show(1000)
	}
}
