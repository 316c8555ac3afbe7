package engine

import (
	"time"

	"pgaccel/plan"
	"pgaccel/pushdown"
	"pgaccel/syntax"
)

// Statements that name nothing of pgaccel's are relayed without a look. Those of them that take the server a while are
// among pgaccel.queries all the same, so that these show where the time goes: what it reads may be worth a copy.

// Watcher is what a Decider may be, too.
type Watcher interface {
	// Seen tells of a statement for which Mentions is false and that took the server a while. It returns at once.
	Seen(sql string, took time.Duration)
}

var _ Watcher = (*Engine)(nil)

// SeenMin is the least time of a statement that is worth to be told.
const SeenMin = 5 * time.Millisecond

// SeenTextMax is the longest text in bytes that is.
const SeenTextMax = 16 << 10

// seenMost bounds the statements that are looked at side by side; what comes meanwhile is left out.
const seenMost = 2

// Seen implements Watcher.
func (e *Engine) Seen(sql string, took time.Duration) {
	if len(sql) > SeenTextMax || !readsOrWrites(sql) {
		return
	}
	select {
	case e.seeing <- struct{}{}:
		go func() {
			defer func() { <-e.seeing }()
			e.see(sql, took)
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

// see counts the statement.
func (e *Engine) see(sql string, took time.Duration) {
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
		p := pushdown.Plan(text, nil, e.catalog())
		if p.Forward == nil {
			return // its tables have just been copied
		}
		refused = p.Refused
	}
	sh, why := e.stats.seenOf(text, refused)
	if why == nil {
		why = forward(plan.ReasonNotSelect, "")
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.forwarded++
	sh.completed++
	sh.server += took
	sh.route, sh.why, sh.last = routeForwarded, *why, time.Now()
}
