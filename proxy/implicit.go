package proxy

import (
	"pgaccel/engine"
	"pgaccel/wire"
)

// implicitTransaction is the REPEATABLE READ block that pgaccel puts around a statement outside of
// any block, so that a check knows its snapshot. The client sees nothing of it:
//
//	client       Query                 |  [Parse] Bind [Describe] Execute Sync
//	asking       gate Sync             |  the same
//	opening      BEGIN Sync            |  the same
//	open         describe, gate, Query |  the client's messages, with the gate
//	closing      COMMIT Sync           |  the same
//	client sees  the answers in between; Z of COMMIT's Sync in place of its own
//
// The first gate is there for SERIALIZABLE, which must not be changed into something
// weaker. A batch gets one only where all of it lies in the read buffer and it is
// one statement. While pgaccel waits for answers of its own, the client's bytes wait.
type implicitTransaction struct {
	stage     implicitStage
	form      engine.GateForm
	gate      [][]*string
	failed    bool   // an own message of this stage has failed
	cancelled bool   // the client has cancelled before its statement was begun, or a timeout has
	cause     []byte // what the server said of it, if it was the one to end
	rollbacks int
}

type implicitStage uint8

const (
	implicitNone implicitStage = iota
	implicitAsking
	implicitOpening
	implicitOpen
	implicitClosing
	implicitDeclined // the message at hand goes on without
)

const (
	beginSQL    = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
	commitSQL   = "COMMIT"
	rollbackSQL = "ROLLBACK"
	// rollbacksMax bounds the attempts to leave a block that does not end.
	rollbacksMax = 5
)

// open says that the block was opened, and the client's messages run in it.
func (t *implicitTransaction) open() bool { return t.stage == implicitOpen }

// busy says that the client's bytes have to wait.
func (t *implicitTransaction) busy() bool {
	return t.stage == implicitAsking || t.stage == implicitOpening || t.stage == implicitClosing
}

// beginImplicit decides whether the message at hand is the beginning of what gets an implicit
// transaction, and begins that then: the message is to be given again. alone says that it is one Query,
// else it has to be the beginning of a batch that qualifies.
func (s *session) beginImplicit(d engine.Decision, alone bool) bool {
	switch {
	case s.implicit.stage == implicitDeclined:
		s.implicit.stage = implicitNone
		return false
	case s.share == nil, s.implicit.stage != implicitNone, s.status != 'I', s.queue.len() > 0, s.inBatch:
		return false
	}
	if d.Route() != engine.RouteCandidate || d.Explain() != nil || s.gateRecentlyRefused() || !alone && !oneStatement(s.lookahead) || !s.share() || !d.Comparable() {
		return false
	}
	s.implicit = implicitTransaction{stage: implicitAsking}
	call := d.Gate()
	s.implicit.form = call.Form
	b := s.gateOf(nil, call.Form, call.Params, true)
	s.own(replySync)
	s.toServer.add(appendEmpty(b, wire.Sync))
	return true
}

// oneStatement reports whether b begins with a whole batch that runs one statement to
// its end.
func oneStatement(b []byte) bool {
	parses, binds, executes := 0, 0, 0
	for len(b) >= wire.HeaderLen {
		typ, total, ok := wire.Header(b)
		if !ok || total > len(b) {
			return false
		}
		body := b[wire.HeaderLen:total]
		b = b[total:]
		switch typ {
		case wire.Parse:
			parses++
		case wire.Bind:
			binds++
		case wire.Execute:
			executes++
			if _, rows, err := wire.CString(body); err != nil || string(rows) != "\x00\x00\x00\x00" {
				return false
			}
		case wire.Describe, wire.Close:
		case wire.Sync:
			return parses <= 1 && binds == 1 && executes == 1
		default:
			return false
		}
	}
	return false
}

// commandBatch runs one command. last is what the ReadyForQuery is to pgaccel.
func (s *session) commandBatch(b []byte, sql string, last reply) []byte {
	b = s.command(b, sql)
	s.own(last)
	return appendEmpty(b, wire.Sync)
}

// implicitReady takes the ReadyForQuery of an own Sync.
func (s *session) implicitReady() action {
	t := &s.implicit
	failed := t.failed
	t.failed = false
	switch t.stage {
	case implicitAsking:
		s.gatePrepared[t.form] = !failed
		if failed || s.status != 'I' || engine.Unwrappable(t.gate) {
			t.stage = implicitDeclined
			return swallow
		}
		t.stage = implicitOpening
		s.toServer.add(s.commandBatch(nil, beginSQL, replySync))
	case implicitOpening:
		switch {
		case s.status == 'T' && !failed:
			t.stage = implicitOpen
		case s.status == 'I':
			t.stage = implicitDeclined
		default:
			s.rollBack(replySync)
		}
	case implicitClosing:
		if s.status != 'I' {
			s.rollBack(replySync | replyShown)
			return swallow
		}
		s.implicit = implicitTransaction{}
		return relay
	}
	return swallow
}

// uncancelled forgets a cancel of a statement that is no local execution.
func (t *implicitTransaction) uncancelled() { t.cancelled, t.cause = false, nil }

// takeCancel returns whether the statement that begins was cancelled before it, and what the
// server said of it, and forgets that.
func (t *implicitTransaction) takeCancel() (cancelled bool, cause []byte) {
	cancelled, cause = t.cancelled, t.cause
	t.uncancelled()
	return cancelled, cause
}

// rollBack leaves a block that has failed, which happens where a cancel request hits
// a message of pgaccel's.
func (s *session) rollBack(last reply) {
	if s.implicit.rollbacks++; s.implicit.rollbacks > rollbacksMax {
		s.stopTracking()
		return
	}
	s.toServer.add(s.commandBatch(nil, rollbackSQL, last))
}

// commitImplicit ends the block behind the client's messages.
func (s *session) commitImplicit(dst []byte) []byte {
	s.implicit.stage = implicitClosing
	return s.commandBatch(dst, commitSQL, replySync|replyShown)
}
