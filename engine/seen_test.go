package engine

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"pgaccel/catalog"
	"pgaccel/colstore"
)

// TestSeenKeepsOthers: however many statements are relayed without a look, those that are decided on are not forgotten, neither
// their counts nor their decisions.
func TestSeenKeepsOthers(t *testing.T) {
	store := colstore.New(colstore.Options{MemoryLimit: 1 << 20})
	defer store.Close()
	store.SetCatalog(&catalog.Catalog{})
	e := New(Options{Store: store, Logger: slog.New(slog.DiscardHandler)})
	const sql = "SELECT count(*) FROM decided"
	kept := e.prepare(sql, nil, nil).current().shape
	for i := range shapesMax + 10 {
		e.see(fmt.Sprintf("SELECT a FROM other%d", i), time.Second)
		e.see(fmt.Sprintf("INSERT INTO other%d VALUES (1)", i), time.Second)
	}
	if n := e.cache.Len(); n != 1 {
		t.Errorf("%d decisions are kept", n)
	}
	if got := e.prepare(sql, nil, nil).current().shape; got != kept {
		t.Error("another shape")
	}
	list := e.stats.list()
	if len(list) != 1+seenShapesMax || list[0] != kept || list[1].text != fmt.Sprintf("INSERT INTO other%d VALUES ($1)", shapesMax+9) {
		t.Errorf("%d shapes, the first of which is %s", len(list), list[0].text)
	}
	// One that is decided on later is of the shape that was seen, and seen again is no other.
	seen := list[2]
	again := seen.text
	if sh := e.prepare(again, nil, nil).current().shape; sh != seen {
		t.Error("decided on, it has another shape")
	}
	e.see(again, time.Second)
	if seen.forwarded != 2 || len(e.stats.list()) != 1+seenShapesMax {
		t.Errorf("forwarded %d times, %d shapes", seen.forwarded, len(e.stats.list()))
	}
}
