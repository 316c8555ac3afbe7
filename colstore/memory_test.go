package colstore

import (
	"errors"
	"math/rand/v2"
	"testing"
)

// TestSharedMemory: stores of one memory have one limit, an index of one gives way to what the other needs, and a store
// that is closed leaves the other's tables as they are.
func TestSharedMemory(t *testing.T) {
	m := NewMemory(1 << 30)
	defer m.Close()
	first, second := New(Options{Memory: m, SegmentRows: 4096, manual: true}), New(Options{Memory: m, SegmentRows: 4096, manual: true})
	defer second.Close()
	indexable(t, first, 20000)
	table, _ := first.Get(7)
	for range 2 * indexUses {
		table.Use(0)
	}
	table.Release()
	settled(t, first)
	indexes := first.Indexes()
	used, _ := m.Usage()
	if indexes == 0 {
		t.Fatal("no index")
	}
	if n, _ := second.Usage(); n != used {
		t.Errorf("the second store sees %d bytes in use, of %d", n, used)
	}
	m.SetLimit(used + indexes/2)
	b := newBlock(second.arena)
	if _, err := b.alloc(int(indexes)); err != nil {
		t.Errorf("no memory though an index of the other store can go: %v", err)
	}
	if first.Indexes() != 0 {
		t.Errorf("%d bytes of indexes", first.Indexes())
	}
	b.release()
	rows := make([]row, 20000)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range rows {
		rows[i] = randomRow(r)
	}
	l := second.NewLoader(meta())
	w := l.NewWriter()
	var err error
	for i := 0; i < len(rows) && err == nil; i++ {
		err = put(w, rows[i])
	}
	if err == nil {
		err = w.Close()
	}
	var short *MemoryError
	if !errors.As(err, &short) {
		t.Errorf("more than the limit: %v", err)
	}
	l.Abort()
	m.SetLimit(1 << 30)
	second.Publish(second.NewRelation(load(t, second, rows, 1)))
	first.Close()
	again, _ := second.Get(7)
	defer again.Release()
	check(t, again, rows)
	if n, _ := m.Usage(); n == 0 || n >= 1<<30 {
		t.Errorf("%d bytes in use", n)
	}
}
