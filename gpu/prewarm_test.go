package gpu

import (
	"context"
	"math/rand/v2"
	"testing"

	"pgaccel/gpu/emulator"
	"pgaccel/gpu/program"
)

// prewarming is what brings some columns of a table.
func prewarming(fact *testTable, columns ...int) *program.Query {
	return &program.Query{Program: &program.Program{Columns: columnsOf(factColumns, columns...)}, Segments: fact.of(columns...), TableID: fact.id}
}

// justColumns is what brings those of a query.
func justColumns(q *program.Query) *program.Query {
	return &program.Query{Program: &program.Program{Columns: q.Columns}, Segments: q.Segments, TableID: q.TableID}
}

func prewarm(m *Manager, q *program.Query) error {
	_, _, err := m.Run(context.Background(), q, RunOptions{Prewarm: true})
	return err
}

// TestPrewarm: a query whose columns have been brought copies as little as one that comes again; nothing gives way for
// columns that are brought ahead.
func TestPrewarm(t *testing.T) {
	for _, devices := range []int{1, 2} {
		r := rand.New(rand.NewPCG(7, uint64(devices)))
		m := newManager(t, Options{Memory: 64 << 20, chunk: 8 << 10, batch: 16 << 10}, newEmulator(t, emulator.Options{Devices: devices}))
		fact, dim := testTables(r, nil)
		copied := func() (bytes uint64) {
			for _, d := range m.Status() {
				bytes += d.BytesCopied
			}
			return bytes
		}
		q := single(r, fact, dim)
		q.Ranges[0] = program.Range{Lo: factColumns[1].lo, Hi: factColumns[1].hi}
		for _, c := range []int{1, 2, 6, 5} {
			if err := prewarm(m, prewarming(fact, c)); err != nil {
				t.Fatal(err)
			}
			if err := m.idle(); err != nil {
				t.Fatal(err)
			}
		}
		brought := copied()
		if err := compare(m, q); err != nil {
			t.Fatal(err)
		}
		first := copied() - brought
		if err := compare(m, q); err != nil {
			t.Fatal(err)
		}
		again := copied() - brought - first
		if first > again || brought < 20*again {
			t.Errorf("%d devices: %d bytes were copied ahead, %d by the first query, %d by the next", devices, brought, first, again)
		}
		if err := prewarm(m, prewarming(fact, 1, 2, 6)); err != nil || copied() != brought+first+again {
			t.Errorf("what is there was copied again: %v", err)
		}
	}

	r := rand.New(rand.NewPCG(8, 8))
	m := newManager(t, Options{Memory: 120 << 10, chunk: 8 << 10}, newEmulator(t, emulator.Options{}))
	fact, _ := testTables(r, nil)
	full := 0
	for c := range factColumns {
		switch err := prewarm(m, prewarming(fact, c)); err {
		case nil:
		case ErrNoRoom:
			full++
		default:
			t.Fatal(err)
		}
	}
	if s := m.Status()[0]; full == 0 || full == len(factColumns) || s.Evictions > 0 || s.Streamed > 0 {
		t.Errorf("%d of %d columns found no room: %+v", full, len(factColumns), s)
	}
	if err := m.idle(); err != nil {
		t.Error(err)
	}
}
