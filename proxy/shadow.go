package proxy

import (
	"context"
	"fmt"
	"hash/maphash"
	"runtime/debug"
	"strings"
	"time"

	"pgaccel/engine"
	"pgaccel/plan"
	"pgaccel/vector"
	"pgaccel/wire"
)

// A share of the executions that could be answered here is answered by the server
// instead, and what pgaccel computes is compared with that (Config.Shadow). The
// client's answer is the server's, relayed as it comes. Both must speak of one
// snapshot:
//
//   - in a REPEATABLE READ block they do;
//   - in a READ COMMITTED block they do where the gate shows the same snapshot before
//     the statement and behind it; CommandComplete is held back until then;
//   - outside of a block the statement gets an implicit transaction of pgaccel's own, in
//     REPEATABLE READ (implicit.go).
//
// While the server answers, hashes of its rows are noted. The rest happens behind the
// session's back: pgaccel's answer is computed, and its rows, written in the client's
// formats, are compared with those, as a multiset or, where only one order is right,
// one by one.

const (
	// checkedMax is the most bytes of an answer that are compared.
	checkedMax = 64 << 20
	// keptMax is how much of the server's first rows is kept to show what differs.
	keptMax = 64 << 10
	// checksMax bounds the checks that are computed at one time.
	checksMax = 8
)

// check is one such execution.
type check struct {
	*engine.Check
	fields    []engine.Field
	formats   []int16
	settings  wire.TextSettings
	paramOIDs []uint32

	rows    []uint64 // hashes of the server's rows
	size    int      // of them in bytes
	kept    [][]byte // the first of them
	keptAll int      // bytes

	trouble string // why nothing can be said
	code    string // SQLSTATE of the error that the server answered with
}

var hashSeed = maphash.MakeSeed()

// row notes a row of the server's.
func (c *check) row(message []byte) {
	if c.trouble != "" {
		return
	}
	if c.size += len(message); c.size > checkedMax {
		c.give("the answer is larger than what is compared")
		return
	}
	body := message[wire.HeaderLen:]
	c.rows = append(c.rows, maphash.Bytes(hashSeed, body))
	if c.keptAll += len(body); c.keptAll <= keptMax {
		c.kept = append(c.kept, append([]byte(nil), body...))
	}
}

// give gives the check up; the answer goes on.
func (c *check) give(why string) {
	if c.trouble == "" {
		c.trouble, c.rows, c.kept = why, nil, nil
	}
}

// drop ends a check that nothing came of.
func (c *check) drop(why string) {
	c.Done(engine.Comparison{Verdict: engine.Inconclusive, Detail: why})
}

// run computes pgaccel's answer and ends the check. Nothing that goes wrong in it
// concerns anybody else.
func (c *check) run(ctx context.Context) {
	result := engine.Comparison{Verdict: engine.Inconclusive, Detail: c.trouble}
	defer func() {
		if p := recover(); p != nil {
			result = engine.Comparison{Verdict: engine.Inconclusive, Detail: fmt.Sprintf("panic: %v\n%s", p, debug.Stack())}
		}
		result.ParamOIDs = c.paramOIDs
		c.Done(result)
	}()
	if c.trouble != "" {
		return
	}
	batch, err := c.Run(ctx)
	defer batch.Release()
	if err != nil {
		result.Detail = err.Error()
		return
	}
	answer, err := c.answer(batch)
	if err != nil { // such as a format that Postgres refuses, too
		result.Detail = err.Error()
		return
	}
	if c.code != "" {
		// That the data make it fail is part of an answer. Anything else (a cancel, no
		// memory) is not.
		if result.Detail = "Postgres raised " + c.code; strings.HasPrefix(c.code, "22") {
			result.Verdict = engine.Different
		}
		return
	}
	result = c.compare(answer)
}

// answer writes rows as the client has asked for them.
func (c *check) answer(batch *vector.Batch) (*answer, error) {
	oids := make([]uint32, len(c.fields))
	for i := range oids {
		oids[i] = c.fields[i].TypeOID
	}
	a := &answer{batch: batch, oids: oids, formats: c.formats, rows: batch.Rows}
	return a, a.encode(c.settings)
}

// compare compares pgaccel's answer with the server's.
func (c *check) compare(a *answer) engine.Comparison {
	var buf []byte
	var kept [][]byte
	ours := make([]uint64, a.rows)
	for keptAll := 0; a.next < a.rows; a.next++ {
		if err := a.load(); err != nil {
			return engine.Comparison{Verdict: engine.Inconclusive, Detail: err.Error()}
		}
		buf = a.encoder.Append(buf[:0], a.next-a.batch.First)
		ours[a.next] = maphash.Bytes(hashSeed, buf[wire.HeaderLen:])
		if keptAll += len(buf); keptAll <= keptMax {
			kept = append(kept, append([]byte(nil), buf[wire.HeaderLen:]...))
		}
	}
	our := func(i int) []byte {
		switch {
		case i < len(kept):
			return kept[i]
		case i >= len(ours) || a.batch.Next != nil: // or it has been passed by
			return nil
		}
		return a.encoder.Append(nil, i)[wire.HeaderLen:]
	}
	their := func(i int) []byte {
		if i >= len(c.kept) {
			return nil
		}
		return c.kept[i]
	}
	differ := func(detail string, i, j int) engine.Comparison {
		return engine.Comparison{Verdict: engine.Different, Detail: detail, Row: max(i, j) + 1, Ours: our(i), Theirs: their(j)}
	}
	counts := fmt.Sprintf("%d rows, Postgres has %d", len(ours), len(c.rows))
	if c.Ordered {
		for i := range min(len(ours), len(c.rows)) {
			if ours[i] != c.rows[i] {
				return differ("a row, or its place; "+counts, i, i)
			}
		}
	}
	left := map[uint64]int{}
	for _, h := range ours {
		left[h]++
	}
	for j, h := range c.rows {
		if left[h]--; left[h] < 0 {
			// Where the order is free, there is no telling which row it should be.
			return differ("a row is missing; "+counts, min(j, max(0, len(ours)-1)), j)
		}
	}
	for i := len(ours) - 1; i >= 0 && len(ours) > len(c.rows); i-- {
		if left[ours[i]]--; left[ours[i]] >= 0 {
			return engine.Comparison{Verdict: engine.Different, Detail: "a row too many; " + counts, Row: i + 1, Ours: our(i)}
		}
	}
	return engine.Comparison{Verdict: engine.Equal}
}

// checking is the stage of a local execution that the server answers, under watch.
type checking struct {
	gateRun // the second gate's, behind the statement
	check   *check
	phase   checkPhase
	tag     []byte // the statement's end, held back
}

type checkPhase uint8

const (
	checkWatching   checkPhase = iota // the statement is answered
	checkConfirming                   // the second gate is run
	checkRefused                      // the role may not run it; a Query's ReadyForQuery follows
	checkUndoing                      // the server goes back behind it
)

// checking returns the check that the session's statement is under, nil for none.
func (s *session) checking() *checking {
	if s.local == nil {
		return nil
	}
	c, _ := s.local.stage.(*checking)
	return c
}

// beginCheck lets the server answer, under watch.
func (s *session) beginCheck(g *gateRun, fields []engine.Field, params []vector.Datum) {
	x := s.local
	ec, err := x.decision.Shadow(g.answer, fields, params)
	if err != nil {
		s.queue.at.refusedBy(err)
		s.forward("") // the engine has counted it
		return
	}
	c := &check{Check: ec, fields: fields, settings: s.settings}
	if x.portal != nil {
		c.formats, c.paramOIDs = x.portal.results, x.portal.s.params
	}
	x.stage = &checking{gateRun: gateRun{free: g.free}, check: c}
	s.tell(false)
	if o := s.queue.at; o != nil {
		o.decision, o.reason = x.decision, plan.ReasonShadow
	}
	s.pass()
	if !x.simple {
		s.toServer.add(appendEmpty(nil, wire.Flush))
	}
}

// commandEnded takes the end of the statement: CommandComplete, most likely.
func (c *checking) commandEnded(s *session, typ byte, message []byte) action {
	if typ != wire.CommandComplete {
		c.check.give("the answer has not ended as a SELECT does")
	}
	if c.check.Fixed || c.check.trouble != "" {
		if !s.local.simple {
			s.endCheck(c)
		}
		return relay
	}
	c.tag = append([]byte(nil), message...)
	if !s.local.simple {
		c.confirm(s, wire.Flush)
	}
	return swallow
}

// confirm runs the gate again, prepared anew. last has the server answer.
func (c *checking) confirm(s *session, last byte) {
	c.phase = checkConfirming
	b := s.gateBatch(nil, &c.gateRun, true)
	if last == wire.Sync {
		s.own(replySync)
	}
	s.toServer.add(appendEmpty(b, last))
}

// answered is called when the second gate has answered, or is undone.
func (c *checking) answered(s *session) {
	s.gatePrepared[c.form] = c.check.trouble == ""
	if snapshot := engine.GateSnapshot(c.answer.Rows); snapshot != c.check.Snapshot {
		c.check.give("others have committed meanwhile")
	}
	s.ahead = c.tag
	s.endCheck(c)
}

// undo goes back behind the second gate, which the session's role may not run (any more): the
// statement itself has been answered.
func (c *checking) undo(s *session) {
	s.refused = time.Now()
	c.check.give("the role may not run the gate any more")
	c.phase = checkUndoing
	if s.local.simple {
		b := s.undoGate(nil, &c.gateRun)
		s.own(replySync)
		s.toServer.add(appendEmpty(b, wire.Sync))
		return
	}
	s.skipping = false
	s.local.ledBack = true
	s.own(replySync)
	s.toServer.add(appendEmpty(s.undoGate(appendEmpty(nil, wire.Sync), &c.gateRun), wire.Flush))
}

func (c *checking) ready(s *session, k reply) action {
	switch {
	case k&replyOwn == 0 && c.tag != nil:
		c.confirm(s, wire.Sync)
		return swallow
	case c.phase == checkRefused:
		c.undo(s)
		return swallow
	case c.phase != checkWatching && c.tag != nil:
		c.answered(s)
	default:
		s.endCheck(c)
	}
	return relay
}

// failed takes an error of the statement, or of the second gate: the client is told of either,
// but not that the role may not run the gate.
func (c *checking) failed(s *session, k reply, body []byte) action {
	code := string(wire.ErrorField(body, 'C'))
	if c.phase != checkUndoing && c.refused(k, code) {
		if s.local.simple {
			c.phase = checkRefused
		} else {
			c.undo(s)
		}
		return swallow
	}
	if c.check.code = code; c.phase != checkWatching || !c.check.Fixed {
		c.check.give("an error: " + code)
	}
	c.tag = nil
	if !s.local.simple {
		s.endCheck(c)
	}
	return relay
}

// endCheck ends the local execution; the check goes to the driver.
func (s *session) endCheck(c *checking) {
	s.checks = append(s.checks, c.check)
	s.finish()
}

// takeChecks returns the checks to be computed, once.
func (s *session) takeChecks() []*check {
	list := s.checks
	s.checks = nil
	return list
}

// compute runs checks beside the sessions.
func (s *Server) compute(list []*check) {
	for _, c := range list {
		select {
		case s.checks <- struct{}{}:
		default:
			c.drop("too many checks at one time")
			continue
		}
		s.executing.Add(1)
		s.goroutines.run(func() {
			defer s.executing.Add(-1)
			defer func() { <-s.checks }()
			c.run(s.ctx)
		})
	}
}
