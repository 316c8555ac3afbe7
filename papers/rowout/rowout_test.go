package rowout

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgaccel/gpu/device"
	"pgaccel/gpu/emulator"
)

func start(t *testing.T) *emulator.Emulator {
	t.Helper()
	e, err := emulator.New(emulator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// edges has cells of many numbers of points and of entries.
func edges() *workload {
	w := &workload{}
	points := []int{0, 1, 31, 32, 33, 63, 64, 127, 128, 129, 511, 512, 513, 1023, 1024, 1025}
	entries := []int{0, 1, 7, 8, 9, 31, 32, 33, 127, 128, 129, 300}
	cell := func(np, ne int) {
		p, ids, e := make([]point, np), make([]uint32, np), make([]uint32, ne)
		for i := range p {
			p[i] = point{rand.Int32N(100) - 50, rand.Int32N(100) - 50}
			ids[i] = rand.Uint32()
		}
		for i := range e {
			x, y := rand.Int32N(100)-50, rand.Int32N(100)-50
			q := rect{x, y, x + rand.Int32N(70), y + rand.Int32N(70)}
			switch rand.IntN(8) {
			case 0:
				q = rect{-1000, -1000, 1000, 1000} // all
			case 1:
				q = rect{60, 60, 70, 70} // none
			}
			e[i] = uint32(len(w.Queries))
			w.Queries = append(w.Queries, q)
		}
		w.add(p, ids, e)
	}
	for i, np := range points {
		cell(np, entries[i%len(entries)])
		cell(np, entries[(i+5)%len(entries)])
		cell(points[(i+3)%len(points)]%200, entries[(i*5+2)%len(entries)])
	}
	return w
}

// check computes a workload's results by each method.
func check(t *testing.T, ex device.Executor, w *workload) {
	t.Helper()
	counts, ids := w.Reference()
	var want [][2]uint32
	at := 0
	for e, n := range counts {
		for _, id := range ids[at : at+int(n)] {
			want = append(want, [2]uint32{w.Entries[e], id})
		}
		at += int(n)
	}
	slices.SortFunc(want, func(a, b [2]uint32) int { return slices.Compare(a[:], b[:]) })
	results, sum := w.sum()
	if results != uint64(len(ids)) {
		t.Fatalf("%d results are summed, and there are %d", results, len(ids))
	}
	ctx := context.Background()
	b, err := upload(ctx, ex, 0, w, results)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Free(); err != nil {
			t.Error(err)
		}
	}()
	words := func(b []byte) []uint32 {
		v := make([]uint32, len(b)/4)
		for i := range v {
			v[i] = binary.LittleEndian.Uint32(b[4*i:])
		}
		return v
	}
	for _, m := range methods() {
		read := func(p device.Pointer, n int) device.Command {
			return device.Command{Op: device.OpRead, Src: p, Bytes: uint64(n) * 4}
		}
		reply, err := ex.Run(ctx, 0, &device.Batch{Commands: append(append(b.forget(), b.Commands(m)...),
			read(b.counts, len(counts)), read(b.out, len(ids)), read(b.pairs, 2*len(ids)), read(b.result, 2))})
		if err != nil {
			t.Fatalf("%s: %v", m.Name, err)
		}
		if len(w.Entries) == 0 {
			continue
		}
		if m.Pairs {
			if n := words(reply.Data[3])[0]; int(n) != len(ids) {
				t.Errorf("%s: %d results, want %d", m.Name, n, len(ids))
				continue
			}
			var got [][2]uint32
			for pair := range slices.Chunk(words(reply.Data[2]), 2) {
				got = append(got, [2]uint32(pair))
			}
			slices.SortFunc(got, func(a, b [2]uint32) int { return slices.Compare(a[:], b[:]) })
			if !slices.Equal(got, want) {
				t.Errorf("%s: other pairs", m.Name)
			}
		} else {
			if !slices.Equal(words(reply.Data[0]), counts) {
				t.Errorf("%s: other counts", m.Name)
			}
			if !slices.Equal(words(reply.Data[1]), ids) {
				t.Errorf("%s: other ids, or in another order", m.Name)
			}
		}
		if err := b.check(ctx, m, results, sum); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
		if err := b.check(ctx, m, results, sum+1); err == nil {
			t.Errorf("%s: another sum is not noticed", m.Name)
		}
	}
}

func TestEdges(t *testing.T) { check(t, start(t), edges()) }

func TestUniform(t *testing.T) {
	e := start(t)
	for _, c := range []struct {
		objects, cell int
		results       float64
	}{{1, 128, 1}, {100, 128, 300}, {700, 128, 2}, {500, 40, 30}, {1100, 500, 10}} {
		w := uniform(c.objects, c.results, c.cell, 1)
		if len(w.Points) != c.objects || len(w.Queries) != c.objects || len(w.Entries) < c.objects {
			t.Fatalf("%+v: %d points, %d queries, %d entries", c, len(w.Points), len(w.Queries), len(w.Entries))
		}
		// What cells leave out is nothing: all points against all queries.
		if c.objects <= 1000 {
			var all uint64
			for _, q := range w.Queries {
				for _, p := range w.Points {
					if q.contains(p) {
						all++
					}
				}
			}
			if n, _ := w.sum(); n != all {
				t.Errorf("%+v: %d results by cells, %d without", c, n, all)
			}
		}
		check(t, e, w)
	}
}

func TestNothing(t *testing.T) {
	check(t, start(t), &workload{})
}

// TestManyEntries sums more than 1024*1024 counts: one block takes turns.
func TestManyEntries(t *testing.T) {
	w := &workload{Queries: []rect{{}}}
	n := 1024*1024 + 1500
	if testing.Short() {
		n = 3000
	}
	w.add(nil, nil, make([]uint32, n))
	b, err := upload(context.Background(), start(t), 0, w, 0)
	if err != nil {
		t.Fatal(err)
	}
	counts := make([]byte, 4*n)
	for i := range n {
		binary.LittleEndian.PutUint32(counts[4*i:], uint32(rand.Uint32()%100))
	}
	commands := append([]device.Command{{Op: device.OpWrite, Dst: b.counts, Data: counts}}, b.Commands(Method{stages: []stage{sums}})...)
	reply, err := b.ex.Run(context.Background(), 0, &device.Batch{Commands: append(commands, device.Command{Op: device.OpRead, Src: b.positions, Bytes: uint64(4 * n)})})
	if err != nil {
		t.Fatal(err)
	}
	at := uint32(0)
	for i := range n {
		if got := binary.LittleEndian.Uint32(reply.Data[0][4*i:]); got != at {
			t.Fatalf("entry %d begins at %d, want %d", i, got, at)
		}
		at += binary.LittleEndian.Uint32(counts[4*i:])
	}
	if err := b.Free(); err != nil {
		t.Error(err)
	}
}

func TestBench(t *testing.T) {
	rows, err := Bench(context.Background(), start(t), 0, Options{Objects: 600, Results: []float64{2, 20}, Runs: 1, Warm: 1})
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 2*len(methods()) {
		t.Errorf("%d measurements", len(rows))
	}
	for _, r := range rows {
		if r.Millis <= 0 || r.OverAtomicRow <= 0 || r.OverAtomicWarp <= 0 || r.Output < 4*int64(r.Results) || r.Results == 0 {
			t.Errorf("%+v", r)
		}
	}
	var text bytes.Buffer
	Print(&text, rows)
	for _, m := range methods() {
		if strings.Count(text.String(), "\n"+m.Name) != 2 {
			t.Errorf("%s is not printed twice", m.Name)
		}
	}
}
