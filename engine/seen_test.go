package engine

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/plan"
	"pgaccel/syntax"
)

// TestSeenKeepsOthers: however many statements are relayed without a look, those that are decided on are not forgotten, neither
// their counts nor their decisions.
func TestSeenKeepsOthers(t *testing.T) {
	store := colstore.New(colstore.Options{MemoryLimit: 1 << 20})
	defer store.Close()
	store.SetCatalog(&catalog.Catalog{})
	e := New(Options{Store: store, Logger: slog.New(slog.DiscardHandler)})
	see := func(sql string) { e.see(sql, "", "", e.catalog(), time.Second) }
	const sql = "SELECT count(*) FROM decided"
	kept := e.prepare(sql, nil, nil).current().shape
	for i := range shapesMax + 10 {
		see(fmt.Sprintf("SELECT a FROM other%d", i))
		see(fmt.Sprintf("INSERT INTO other%d VALUES (1)", i))
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
	see(again)
	if seen.forwarded != 2 || len(e.stats.list()) != 1+seenShapesMax {
		t.Errorf("forwarded %d times, %d shapes", seen.forwarded, len(e.stats.list()))
	}
}

// TestSeenIsCheap: of the statements of one shape one is parsed, all are counted. Others are not looked at where that took too long.
func TestSeenIsCheap(t *testing.T) {
	store := colstore.New(colstore.Options{MemoryLimit: 1 << 20})
	defer store.Close()
	store.SetCatalog(&catalog.Catalog{})
	e := New(Options{Store: store, Logger: slog.New(slog.DiscardHandler)})
	idle := func() {
		for range seenMost {
			e.seen.slots <- struct{}{}
		}
		for range seenMost {
			<-e.seen.slots
		}
	}
	count := func(text string) (n int64) {
		for _, sh := range e.stats.list() {
			if sh.text == text {
				n += sh.forwarded
			}
		}
		return n
	}
	const a = "SELECT a FROM other WHERE b = $1"
	e.Seen("SELECT a FROM other WHERE b = 0", time.Second)
	idle()
	e.seen.took(time.Hour)
	for i := range 100 {
		e.Seen(fmt.Sprintf("SELECT a FROM other WHERE b = %d", i), time.Second)
	}
	if n := count(a); n != 101 {
		t.Errorf("%d are counted", n)
	}
	e.Seen("SELECT c FROM other", time.Second)
	idle()
	if n := count("SELECT c FROM other"); n != 0 {
		t.Errorf("%d of another shape", n)
	}
	e.seen.took(-2 * time.Hour)
	store.SetCatalog(&catalog.Catalog{}) // what was found is looked at anew
	e.Seen("SELECT a FROM other WHERE b = 'x'", time.Second)
	e.Seen("SELECT c FROM other", time.Second)
	idle()
	if n, m := count(a), count("SELECT c FROM other"); n != 102 || m != 1 || e.seen.known.Len() != 2 {
		t.Errorf("%d, %d are counted, %d known", n, m, e.seen.known.Len())
	}
}

// TestShape: what Shape returns is what the parser makes of the text, and statements like one another are parsed once, by one catalog.
func TestShape(t *testing.T) {
	store := colstore.New(colstore.Options{MemoryLimit: 1 << 20})
	defer store.Close()
	store.SetCatalog(&catalog.Catalog{})
	e := New(Options{Store: store, Logger: slog.New(slog.DiscardHandler)})
	f := func(sql, text string, why plan.Reason, parses int64) {
		t.Helper()
		before := syntax.Parses.Load()
		gotText, gotWhy := e.Shape(sql)
		if n := syntax.Parses.Load() - before; gotText != text || gotWhy != why || n != parses {
			t.Errorf("%s: %s, %s, parsed %d times", sql, gotText, gotWhy, n)
		}
	}
	f("SELECT a FROM elsewhere WHERE b = 'x'", "SELECT a FROM elsewhere WHERE b = $1", plan.ReasonNoTable, 1)
	f("SELECT a FROM elsewhere WHERE b = 'y' /*traceparent='00'*/", "SELECT a FROM elsewhere WHERE b = $1", plan.ReasonNoTable, 1) // a blank more
	f("SELECT a FROM elsewhere WHERE b = 'z' /*traceparent='01'*/", "SELECT a FROM elsewhere WHERE b = $1", plan.ReasonNoTable, 0)
	f(`SELECT a FROM elsewhere WHERE b = E'\\'`, "SELECT a FROM elsewhere WHERE b = $1", plan.ReasonNoTable, 1)
	f("UPDATE t SET a = 'x'", "UPDATE t SET a = $1", plan.ReasonNotSelect, 1)
	f("UPDATE t SET a = 'y'", "UPDATE t SET a = $1", plan.ReasonNotSelect, 0)
	f("ALTER ROLE r PASSWORD 'x'", "ALTER ROLE r PASSWORD $1", plan.ReasonNotSelect, 1)
	f("ALTER ROLE r PASSWORD 'x'", "ALTER ROLE r PASSWORD $1", plan.ReasonNotSelect, 1)
	store.SetCatalog(&catalog.Catalog{ServerVersion: 180000})
	f("UPDATE t SET a = 'z'", "UPDATE t SET a = $1", plan.ReasonNotSelect, 1)
}
