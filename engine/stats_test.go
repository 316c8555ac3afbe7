package engine

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgaccel/plan"
	"pgaccel/pushdown"
	"pgaccel/syntax"
)

// TestLongStatementsAreCut: the texts that pgaccel.queries shows take little memory however
// long statements are, and those that differ only behind the cut are still told apart.
func TestLongStatementsAreCut(t *testing.T) {
	var s stats
	s.init()
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	const long = 256 << 10
	shapes := map[*shape]bool{}
	for i := range 200 {
		sh, _ := s.shapeOf(syntax.Parse(fmt.Sprintf(`SELECT "%s" FROM t%d`, strings.Repeat("é", long/2), i)), nil, false)
		shapes[sh] = true
		if n := len(sh.text); n > shapeTextMax+200 || !utf8.ValidString(sh.text) {
			t.Fatalf("%d bytes are kept: %.100q", n, sh.text)
		}
	}
	if len(shapes) != 200 {
		t.Errorf("200 statements have %d shapes", len(shapes))
	}
	if grown := int64(heap() - before); grown > 200*long/4 {
		t.Errorf("200 statements of %d bytes hold %d", long, grown)
	}
	runtime.KeepAlive(&s)
}

// TestShortened: a position is one in the text that is kept.
func TestShortened(t *testing.T) {
	for _, n := range []int{shapeTextMax - 1, shapeTextMax, shapeTextMax + 1, shapeTextMax + 2} {
		text := strings.Repeat("x", n-2) + "é" // the last character may lie across the cut
		got, positions := shortened(text, []int{n - 1, 5})
		cut := len(text) > shapeTextMax
		if (got != text) != cut {
			t.Errorf("%d bytes: %q", len(text), got[shapeTextMax-4:])
		}
		if want := n - 1; cut && positions[0] != 0 || !cut && positions[0] != want {
			t.Errorf("%d bytes: position %d", len(text), positions[0])
		}
		if positions[1] != 5 || !utf8.ValidString(got) {
			t.Errorf("%d bytes: position %d in %q", len(text), positions[1], got[shapeTextMax-4:])
		}
	}
}

// TestAllRefusals: the first refusal of a statement has the others with it, each with its place
// in the text without constants.
func TestAllRefusals(t *testing.T) {
	var s stats
	s.init()
	sql := "SELECT 'a constant', f(a), g(b) FROM t"
	refused := func(r plan.Reason, detail, at string) pushdown.Refusal {
		return pushdown.Refusal{Forward: &plan.Forward{Reason: r, Detail: detail}, At: strings.Index(sql, at)}
	}
	sh, f := s.shapeOf(syntax.Parse(sql), []pushdown.Refusal{refused(plan.ReasonFunction, "f()", "f("), refused(plan.ReasonFunction, "g()", "g("), refused(plan.ReasonShape, "", "nowhere")}, false)
	if sh.text != "SELECT $1, f(a), g(b) FROM t" || f.Detail != "f()" || f.Position != 12 {
		t.Errorf("%q: %+v", sh.text, f)
	}
	if also := alsoRefused(f.Also); also != "unsupported function: g() (at 18)\nunsupported shape" {
		t.Errorf("%q", also)
	}
	if _, f := s.shapeOf(syntax.Parse(sql), nil, false); f != nil {
		t.Errorf("%+v", f)
	}
}

// TestSaved: executions of which both sides' times are known count, slower ones against what was saved.
func TestSaved(t *testing.T) {
	var e Engine
	e.stats.init()
	f := func(what string, want time.Duration) {
		t.Helper()
		if got := e.Saved(); got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	sh := &shape{text: "SELECT"}
	e.stats.accelerated(sh, time.Millisecond, 1, deviceCPU, unitDefault)
	f("before the server has answered it", 0)
	sh.served(10 * time.Millisecond)
	f("what came before", 0)
	e.stats.accelerated(sh, time.Millisecond, 1, deviceCPU, unitDefault)
	f("one", 9*time.Millisecond)
	e.stats.partial(sh, 4*time.Millisecond, 1, &plan.Forward{Reason: plan.ReasonFunction}, unitDefault)
	f("and one in part", 15*time.Millisecond)
	e.stats.accelerated(sh, 12*time.Millisecond, 1, deviceCPU, unitDefault)
	f("and a slower one", 13*time.Millisecond)
}
