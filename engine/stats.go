package engine

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	lru "github.com/hashicorp/golang-lru/v2"

	"pgaccel/plan"
	"pgaccel/pushdown"
	"pgaccel/syntax"
)

// shapesMax bounds the statements that pgaccel.queries remembers; the least
// recently used are forgotten.
const shapesMax = 1000

// seenShapesMax bounds those among them that are relayed without a look. They have a list of their own: a load of INSERTs
// of so many rows each, no two of one shape, is not to have the others forgotten.
const seenShapesMax = 250

// shapeTextMax bounds the bytes that are kept of a statement's text. What is longer is cut,
// and told from others by its checksum: a thousand statements with lists of a megabyte would
// hold a gigabyte.
const shapeTextMax = 16 << 10

// shortened returns a text as it is kept, and the positions in it of what is at positions
// of the text: 0 where that is cut off.
func shortened(text string, positions []int) (string, []int) {
	if len(text) <= shapeTextMax {
		return text, positions
	}
	cut := shapeTextMax
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	kept := utf8.RuneCountInString(text[:cut])
	for i, p := range positions {
		if p > kept {
			positions[i] = 0
		}
	}
	return fmt.Sprintf("%s ... (%d bytes, SHA-256 %x)", text[:cut], len(text), sha256.Sum256([]byte(text))), positions
}

// stats counts executions, by shape and in total.
type stats struct {
	mu     sync.Mutex
	shapes *lru.Cache[string, *shape]
	seen   *lru.Cache[string, *shape] // that Seen alone has met
	totals sync.Map                   // total -> *atomic.Int64
	saved  atomic.Int64               // see Engine.Saved

	mismatched  sync.Map // text of a shape that was wrong -> *shape
	anyMismatch atomic.Bool
}

// total is a label set of pgaccel_queries_total.
type total struct {
	route  string
	reason plan.Reason
}

// shape is a statement with its constants taken out.
type shape struct {
	text        string
	mu          sync.Mutex
	accelerated int64
	partial     int64
	forwarded   int64
	route       string       // of the last execution: one of the route... names
	why         plan.Forward // of that; nothing where it was accelerated
	rows        int64
	busy        time.Duration // sum over accelerated executions, without the gate
	fastest     time.Duration
	completed   int64         // forwarded executions that the server has completed
	server      time.Duration // sum over these, from sending them to the server
	last        time.Time
	checks      int64 // shadow checks that came to something
	mismatches  int64

	device     string        // that ran the last accelerated execution, "cpu" for none
	onDevice   int64         // accelerated executions that one ran
	deviceBusy time.Duration // sum over these
	choice     deviceChoice
	routing    routing
	ahead      backoff
}

// The routes of executions.
const (
	routeAccelerated = "accelerated"
	routePartial     = "partial"
	routeForwarded   = "forwarded"
)

func (s *stats) init() {
	s.shapes = must(lru.New[string, *shape](shapesMax))
	s.seen = must(lru.New[string, *shape](seenShapesMax))
}

// shapeOf returns the shape of a statement, a new one where it is not known, and why it is
// forwarded: the first of what is refused, with the rest; nil where nothing is. The shape of one
// that is relayed without a look has a place among its like only.
func (s *stats) shapeOf(t *syntax.Text, refused []pushdown.Refusal, relayed bool) (sh *shape, why *plan.Forward) {
	text, why := shapeText(t, refused)
	s.mu.Lock()
	defer s.mu.Unlock()
	sh, ok := s.shapes.Get(text)
	if ok {
		return sh, why
	}
	if sh, ok = s.seen.Get(text); !ok {
		sh = &shape{text: text}
	}
	if relayed {
		s.seen.Add(text, sh)
		return sh, why
	}
	if old, ok := s.mismatched.Load(text); ok {
		sh = old.(*shape)
	}
	s.seen.Remove(text)
	s.shapes.Add(text, sh)
	return sh, why
}

// keep has a shape of seenOf remembered as one that was just used.
func (s *stats) keep(sh *shape) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.shapes.Contains(sh.text) {
		s.seen.Add(sh.text, sh)
	}
}

// shapeText returns the text of a statement's shape, and what is refused of it.
func shapeText(t *syntax.Text, refused []pushdown.Refusal) (text string, why *plan.Forward) {
	at := make([]int, len(refused))
	all := make([]plan.Forward, len(refused))
	for i, r := range refused {
		at[i], all[i] = r.At, *r.Forward
	}
	text, positions := shortened(t.Normalize(at...))
	for i := range all {
		all[i].Position = positions[i]
	}
	if len(all) > 0 {
		why = &all[0]
		why.Also = all[1:]
	}
	return text, why
}

func (s *stats) count(route string, reason plan.Reason) {
	k := total{route, reason}
	c, ok := s.totals.Load(k)
	if !ok {
		c, _ = s.totals.LoadOrStore(k, new(atomic.Int64))
	}
	c.(*atomic.Int64).Add(1)
}

// accelerated counts an answer; device is what computed it, unit that of the server's estimates.
func (s *stats) accelerated(sh *shape, d time.Duration, rows int, device string, unit time.Duration) {
	s.count(routeAccelerated, "")
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.device = device; device != deviceCPU {
		sh.onDevice++
		sh.deviceBusy += d
	}
	if sh.accelerated+sh.partial == 0 || d < sh.fastest {
		sh.fastest = d
	}
	sh.accelerated++
	sh.route, sh.why = routeAccelerated, plan.Forward{}
	sh.rows += int64(rows)
	sh.busy += d
	sh.last = time.Now()
	s.save(sh, d, unit)
}

// save adds what an execution that took d has saved, where it is known what the server takes. The shape is locked.
func (s *stats) save(sh *shape, d, unit time.Duration) {
	if server, known := sh.serverTime(unit); known {
		s.saved.Add(int64(server - d))
	}
}

// Saved is the sum, over accelerated and partial executions, of what PostgreSQL takes for such a statement less what they
// took, as pgaccel.queries has it in gain_ms. Those of which one is not known do not count; slower ones count against it.
func (e *Engine) Saved() time.Duration { return time.Duration(e.stats.saved.Load()) }

// partial counts an answer of which the server has run what is refused because of why.
func (s *stats) partial(sh *shape, d time.Duration, rows int, why *plan.Forward, unit time.Duration) {
	s.count(routePartial, why.Reason)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.accelerated+sh.partial == 0 || d < sh.fastest {
		sh.fastest = d
	}
	sh.partial++
	sh.rows += int64(rows)
	sh.busy += d
	sh.route, sh.why = routePartial, *why
	sh.last = time.Now()
	s.save(sh, d, unit)
}

// forwarded counts an execution, and returns when; zero where nobody sees the shape.
func (s *stats) forwarded(sh *shape, why *plan.Forward) time.Time {
	s.count(routeForwarded, why.Reason)
	if sh.text == "" {
		return time.Time{}
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.forwarded++
	sh.route, sh.why = routeForwarded, *why
	sh.last = time.Now()
	return sh.last
}

// served counts a forwarded execution that the server has completed.
func (sh *shape) served(took time.Duration) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.completed++
	sh.server += took
}

// Count is one value of pgaccel_queries_total.
type Count struct {
	Route  string // accelerated, partial or forwarded
	Reason plan.Reason
	N      int64
}

// Counts returns the executions so far, by route and reason.
func (e *Engine) Counts() []Count {
	var out []Count
	e.stats.totals.Range(func(k, v any) bool {
		out = append(out, Count{Route: k.(total).route, Reason: k.(total).reason, N: v.(*atomic.Int64).Load()})
		return true
	})
	return out
}

// StatementStats is what pgaccel.queries has of one shape, for who chooses tables by it.
type StatementStats struct {
	Text   string
	Calls  int64         // executions that have come to an end
	Server time.Duration // what PostgreSQL takes for one; 0 where that is not known
	Here   time.Duration // what an accelerated or partial one takes; 0 where there was none
}

// StatementStats returns all shapes of which an execution has come to an end.
func (e *Engine) StatementStats() []StatementStats {
	var all []StatementStats
	unit := e.trials.unit()
	for _, sh := range e.stats.list() {
		sh.mu.Lock()
		answered := sh.accelerated + sh.partial
		st := StatementStats{Text: sh.text, Calls: answered + sh.completed}
		if d, known := sh.serverTime(unit); known {
			st.Server = d
		}
		if answered > 0 {
			st.Here = sh.busy / time.Duration(answered)
		}
		sh.mu.Unlock()
		if st.Calls > 0 {
			all = append(all, st)
		}
	}
	return all
}

// list returns the shapes, the most recently used first, those that are only seen behind the others.
func (s *stats) list() []*shape {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := append(s.seen.Values(), s.shapes.Values()...)
	slices.Reverse(v)
	return v
}
