package colstore

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pgaccel/catalog"
	"pgaccel/vector"
)

// cpu returns the time that the process has computed: on a machine that others use,
// too, the clock says little.
func cpu() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func reportCPU(b *testing.B, spent time.Duration, n int64) {
	b.ReportMetric(float64(spent.Nanoseconds())/float64(max(n, 1)), "cpu-ns/op")
}

// benchMeta describes ten columns: the key k, seven numbers, two texts.
func benchMeta() *catalog.Table {
	m := &catalog.Table{OID: 7, Schema: "public", Name: "t", Identity: []int{0}}
	for i := range 10 {
		kind := vector.Int8
		if i >= 8 {
			kind = vector.Text
		}
		t := vector.TypeOf(kind)
		t.Collation = vector.Collation{OID: 950, Deterministic: true, C: true}
		m.Columns = append(m.Columns, catalog.Column{Name: fmt.Sprint("c", i), Type: t})
	}
	return m
}

var benchTexts = func() (all [][]byte) {
	for i := range 1000 {
		all = append(all, fmt.Appendf(nil, "Customer#%09d", i))
	}
	return all
}()

func benchRow(row *Row, k int64) {
	for i := range row.State {
		row.State[i] = ColumnValue
		row.Int[i] = k + int64(i)
	}
	row.Int[0] = k
	row.Text[8], row.Text[9] = benchTexts[k%1000], benchTexts[k*7%1000]
}

// benchTable publishes a table of n rows with the keys 0..n-1.
func benchTable(b *testing.B, o Options, n int64) (*Store, *Relation) {
	if o.FoldLag == 0 {
		o.FoldLag = time.Hour
	}
	s := New(o)
	meta := benchMeta()
	l := s.NewLoader(meta)
	w := l.NewWriter()
	row := NewRow(meta)
	for k := range n {
		benchRow(row, k)
		for i := range row.State {
			if i >= 8 {
				w.Text(i, row.Text[i])
			} else {
				w.Int(i, row.Int[i])
			}
		}
		if err := w.EndRow(); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	t, err := l.Finish()
	if err != nil {
		b.Fatal(err)
	}
	t.Snapshot = Snapshot{Xmin: 1, Xmax: 1}
	r := s.NewRelation(t)
	s.Publish(r)
	return s, r
}

// keyOf is a scattered key below n.
func keyOf(i, n int64) int64 { return int64(uint64(i) * 0x9e3779b97f4a7c15 >> 20 % uint64(n)) }

func checkRows(b *testing.B, s *Store, want int64) {
	b.Helper()
	t, err := s.View(7, Everything)
	if err != nil || t.Rows != want {
		b.Fatalf("%v, want %d rows", err, want)
	}
	t.Release()
}

func BenchmarkInsert(b *testing.B) {
	s, r := benchTable(b, Options{MemoryLimit: 16 << 30}, 0)
	defer s.Close()
	row := NewRow(r.Meta())
	n := int64(0)
	begun := cpu()
	for b.Loop() {
		benchRow(row, n)
		if err := r.Insert(7, row); err != nil {
			b.Fatal(err)
		}
		n++
		if n%100 == 0 {
			if err := r.Commit(uint64(n), uint64(n)); err != nil {
				b.Fatal(err)
			}
		}
	}
	reportCPU(b, cpu()-begun, n)
	r.Commit(uint64(n), uint64(n))
	checkRows(b, s, n)
}

const benchRows = 6_000_000

func BenchmarkUpdate(b *testing.B) {
	s, r := benchTable(b, Options{MemoryLimit: 16 << 30}, benchRows)
	defer s.Close()
	row := NewRow(r.Meta())
	before := cpu()
	used, _ := s.Usage()
	benchRow(row, 5)
	if err := r.Update(7, nil, row); err != nil {
		b.Fatal(err)
	}
	built := cpu() - before
	now, _ := s.Usage()
	n := int64(0)
	begun := cpu()
	for b.Loop() {
		benchRow(row, keyOf(n, benchRows))
		if err := r.Update(7, nil, row); err != nil {
			b.Fatal(err)
		}
		n++
		if n%100 == 0 {
			if err := r.Commit(uint64(n), uint64(n)); err != nil {
				b.Fatal(err)
			}
		}
	}
	reportCPU(b, cpu()-begun, n)
	b.ReportMetric(built.Seconds(), "cpu-s/build")
	b.ReportMetric(float64(now-used)/1e6, "index-MB")
	r.Commit(uint64(n), uint64(n))
	checkRows(b, s, benchRows)
}

func BenchmarkView(b *testing.B) {
	run := func(name string, commits int, same bool) {
		b.Run(name, func(b *testing.B) {
			s, r := benchTable(b, Options{MemoryLimit: 16 << 30}, benchRows)
			defer s.Close()
			row := NewRow(r.Meta())
			for i := range commits {
				benchRow(row, keyOf(int64(i), benchRows))
				if err := r.Update(7, nil, row); err != nil {
					b.Fatal(err)
				}
				r.Commit(uint64(10+i), uint64(i))
			}
			xid := uint64(10 + commits)
			running := []uint64{5}
			var spent time.Duration
			n := int64(0)
			begun := cpu()
			for b.Loop() {
				snap := Snapshot{Xmin: 5, Xmax: xid, Xip: running}
				if !same {
					// Another commit each time, and one that is not seen yet.
					benchRow(row, keyOf(int64(xid), benchRows))
					if err := r.Update(7, nil, row); err != nil {
						b.Fatal(err)
					}
					r.Commit(xid, xid)
					xid++
					if xid%1000 == 0 {
						r.fold(Snapshot{Xmin: 5, Xmax: xid - 500, Xip: running}, nil) // 500 to 1500 are left
					}
					begun = cpu()
				}
				t, err := s.View(7, snap)
				if err != nil || t.Rows != benchRows {
					b.Fatal(err)
				}
				t.Release()
				if n++; !same {
					spent += cpu() - begun
				}
			}
			if same {
				spent = cpu() - begun
			}
			reportCPU(b, spent, n)
		})
	}
	run("idle", 0, true)
	run("1000 commits, the same snapshot", 1000, true)
	run("1000 commits, another snapshot", 1000, false)
}

// BenchmarkViewFirst makes the view of 1000 commits from nothing.
func BenchmarkViewFirst(b *testing.B) {
	s, r := benchTable(b, Options{MemoryLimit: 16 << 30}, benchRows)
	defer s.Close()
	row := NewRow(r.Meta())
	for i := range 1000 {
		benchRow(row, keyOf(int64(i), benchRows))
		if err := r.Update(7, nil, row); err != nil {
			b.Fatal(err)
		}
		r.Commit(uint64(10+i), uint64(i))
	}
	n, begun := int64(0), cpu()
	for b.Loop() {
		n++
		var g garbage
		r.mu.Lock()
		r.invalidate(&g)
		r.mu.Unlock()
		g.release()
		checkRows(b, s, benchRows)
	}
	reportCPU(b, cpu()-begun, n)
}
