package engine

import (
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"pgaccel/catalog"
	"pgaccel/plan"
	"pgaccel/pushdown"
	"pgaccel/syntax"
)

// Statements that name nothing of pgaccel's are relayed without a look, and such as UPDATE with little. Those of them that take the server a while are
// among pgaccel.queries all the same, so that these show where the time goes: what it reads may be worth a copy.

// Watcher is what a Decider may be, too.
type Watcher interface {
	// Seen tells of a statement for which Mentions or Decision.Listed is false and that took the server a while. It returns at once.
	Seen(sql string, took time.Duration)
	// Executed is Seen of an EXECUTE of a statement of SQL's PREPARE, which is never answered here.
	Executed(sql string, took time.Duration)
	// Shape returns the text of a statement without its constants, as pgaccel.queries shows it, and the reason why it is forwarded
	// where it names nothing of pgaccel's; "" where nothing stands against it. It parses and plans the statement, unless one like it was asked for.
	Shape(sql string) (text string, why plan.Reason)
	// Prepared returns the name and the statement of a PREPARE, or the name that an EXECUTE has; no name for other texts.
	Prepared(text []byte) (name, sql string)
}

var _ Watcher = (*Engine)(nil)

// SeenMin is the least time of a statement that is worth to be told.
const SeenMin = 5 * time.Millisecond

// SeenTextMax is the longest text in bytes that is.
const SeenTextMax = 16 << 10

// seenMost bounds the statements that are looked at side by side; what comes meanwhile is left out.
const seenMost = 2

// To parse and plan a statement takes more than to relay it, and where the server is busy everything takes it long. Who is
// looked at is one of a shape; others are counted by their text without constants. Looks may take a twentieth of a core, and
// seenBurst at once.
const (
	seenShare = 20
	seenBurst = time.Second
)

// seen is what an engine knows of the statements that it has been told of.
type seen struct {
	slots chan struct{} // as many as are looked at

	mu      sync.Mutex
	catalog *catalog.Catalog // of which known is
	known   *lru.Cache[string, seenShape]
	texts   *lru.Cache[string, seenText] // likewise, of those that Shape was asked for
	left    time.Duration                // that looks may take
	at      time.Time                    // of left
}

// seenShape is what a look has come to.
type seenShape struct {
	shape *shape
	why   *plan.Forward
}

// seenText is what Shape returns.
type seenText struct {
	text string
	why  plan.Reason
}

func (s *seen) init() {
	s.slots = make(chan struct{}, seenMost)
	s.known = must(lru.New[string, seenShape](seenShapesMax))
	s.texts = must(lru.New[string, seenText](seenShapesMax))
	s.left, s.at = seenBurst, time.Now()
}

// find returns what is known of a text without constants. may says whether another look may be taken.
func (s *seen) find(stripped []byte, cat *catalog.Catalog) (found seenShape, ok, may bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.by(cat)
	if found, ok = s.known.Get(string(stripped)); ok {
		return found, true, false
	}
	now := time.Now()
	s.left = min(seenBurst, s.left+now.Sub(s.at)/seenShare)
	s.at = now
	return found, false, s.left > 0
}

// by forgets what is known by another catalog. The lock is held.
func (s *seen) by(cat *catalog.Catalog) {
	if s.catalog != cat {
		s.catalog = cat
		s.known.Purge()
		s.texts.Purge()
	}
}

// textOf returns what Shape has returned for a text without constants.
func (s *seen) textOf(stripped []byte, cat *catalog.Catalog) (found seenText, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.by(cat)
	return s.texts.Get(string(stripped))
}

// keepText keeps that.
func (s *seen) keepText(stripped []byte, cat *catalog.Catalog, found seenText) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.catalog == cat {
		s.texts.Add(string(stripped), found)
	}
}

// looked keeps what a look has come to.
func (s *seen) looked(stripped string, cat *catalog.Catalog, found seenShape) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stripped != "" && s.catalog == cat {
		s.known.Add(stripped, found)
	}
}

// took notes what a look has taken.
func (s *seen) took(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left -= d
}

// Seen implements Watcher.
func (e *Engine) Seen(sql string, took time.Duration) { e.relayed(sql, "", took) }

// Executed implements Watcher.
func (e *Engine) Executed(sql string, took time.Duration) {
	if took >= SeenMin || e.Mentions([]byte(sql)) {
		e.relayed(sql, "EXECUTE of a statement of PREPARE", took)
	}
}

// Shape implements Watcher.
func (e *Engine) Shape(sql string) (text string, why plan.Reason) {
	defer func() {
		if p := recover(); p != nil {
			e.log.Error("a statement that was forwarded could not be looked at", "panic", p)
			text, why = "<unparsable>", plan.ReasonInternalError
		}
	}()
	cat := e.catalog()
	var buf [1024]byte
	stripped, ok := stripConstants(buf[:0], sql)
	if ok = ok && readsOrWrites(sql); ok {
		if found, known := e.seen.textOf(stripped, cat); known {
			return found.text, found.why
		}
	}
	t := syntax.Parse(sql)
	var refused []pushdown.Refusal
	why = plan.ReasonNotSelect
	if sel, _ := t.Select(); sel != nil {
		if refused, why = pushdown.Plan(t, nil, cat).Refused, ""; len(refused) > 0 {
			why = refused[0].Forward.Reason
		}
	}
	text, _ = shapeText(t, refused)
	if ok {
		e.seen.keepText(stripped, cat, seenText{text, why})
	}
	return text, why
}

// Prepared implements Watcher.
func (e *Engine) Prepared(text []byte) (name, sql string) {
	if word := firstWord(text); len(text) > SeenTextMax || word != "prepare" && word != "execute" {
		return "", ""
	}
	return syntax.ParsePart(string(text)).Prepared()
}

// relayed counts a statement. by is why one is relayed that might be answered here otherwise; "" for none.
func (e *Engine) relayed(sql, by string, took time.Duration) {
	if len(sql) > SeenTextMax || !readsOrWrites(sql) {
		return
	}
	var buf [1024]byte
	stripped, ok := stripConstants(buf[:0], sql)
	if !ok {
		stripped = nil
	} else {
		stripped = append(stripped, by...) // the reasons are others
	}
	cat := e.catalog()
	found, known, may := e.seen.find(stripped, cat)
	if known {
		e.stats.keep(found.shape)
		found.count(took)
		return
	} else if !may {
		return
	}
	select {
	case e.seen.slots <- struct{}{}:
		key := string(stripped)
		go func() {
			defer func() { <-e.seen.slots }()
			began := time.Now()
			e.see(sql, by, key, cat, took)
			e.seen.took(time.Since(began))
		}()
	default:
	}
}

// readsOrWrites reports whether a statement is one of those whose constants Normalize takes out: others may have
// passwords.
func readsOrWrites(sql string) bool {
	if i := skipSpace(sql, 0); i < len(sql) && sql[i] == '(' {
		return true
	}
	switch firstWord(sql) {
	case "select", "with", "values", "table", "insert", "update", "delete", "merge":
		return true
	}
	return false
}

// see looks at a statement, and counts it. Stripped is its text without constants, or empty.
func (e *Engine) see(sql, by, stripped string, cat *catalog.Catalog, took time.Duration) {
	defer func() {
		if p := recover(); p != nil {
			e.log.Error("a statement that was forwarded could not be looked at", "panic", p)
		}
	}()
	text := syntax.Parse(sql)
	sel, other := text.Select()
	if sel == nil && other != "" {
		return // several statements, or none
	}
	// It is planned for what stands against it, but not kept with the statements that may be answered here.
	var refused []pushdown.Refusal
	if sel != nil {
		p := pushdown.Plan(text, nil, cat)
		switch refused = p.Refused; {
		case p.Forward != nil:
		case by != "":
			refused = []pushdown.Refusal{{Forward: forward(plan.ReasonNotSelect, by), At: -1}}
		default:
			return // its tables have just been copied
		}
	}
	found := seenShape{}
	if found.shape, found.why = e.stats.shapeOf(text, refused, true); found.why == nil {
		found.why = forward(plan.ReasonNotSelect, "")
	}
	e.seen.looked(stripped, cat, found)
	found.count(took)
}

// count counts an execution.
func (f seenShape) count(took time.Duration) {
	sh := f.shape
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.forwarded++
	sh.completed++
	sh.server += took
	sh.route, sh.why, sh.last = routeForwarded, *f.why, time.Now()
}
