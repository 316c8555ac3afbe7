package proxy

import (
	"pgaccel/engine"
	"pgaccel/wire"
)

// wrap is the REPEATABLE READ block that pgaccel puts around a statement outside of
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
// weaker. A batch is wrapped only where all of it lies in the read buffer and it is
// one statement. While pgaccel waits for answers of its own, the client's bytes wait.
type wrap struct {
	stage     wrapStage
	form      engine.GateForm
	gate      [][]*string
	failed    bool   // an own message of this stage has failed
	cancelled bool   // the client has cancelled before its statement was begun, or a timeout has
	cause     []byte // what the server said of it, if it was the one to end
	rollbacks int
}

type wrapStage uint8

const (
	wrapNone wrapStage = iota
	wrapAsking
	wrapOpening
	wrapOpen
	wrapClosing
	wrapDeclined // the message at hand goes on without
)

const (
	wrapName    = "pgaccel_wrap"
	beginSQL    = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
	commitSQL   = "COMMIT"
	rollbackSQL = "ROLLBACK"
	// rollbacksMax bounds the attempts to leave a block that does not end.
	rollbacksMax = 5
)

// busy says that the client's bytes have to wait.
func (w *wrap) busy() bool {
	return w.stage == wrapAsking || w.stage == wrapOpening || w.stage == wrapClosing
}

// wraps decides whether the message at hand is the beginning of what is wrapped, and
// begins it then: the message is to be given again. alone says that it is one Query,
// else it has to be the beginning of a batch that qualifies.
func (s *session) wraps(d engine.Decision, alone bool) bool {
	switch {
	case s.wrap.stage == wrapDeclined:
		s.wrap.stage = wrapNone
		return false
	case s.share == nil, s.wrap.stage != wrapNone, s.status != 'I', s.queue.len() > 0, s.inBatch:
		return false
	}
	if d.Route() != engine.RouteCandidate || s.gateRecentlyRefused() || !alone && !oneStatement(s.lookahead) || !s.share() || !d.Comparable() {
		return false
	}
	s.wrap = wrap{stage: wrapAsking}
	form, params := d.Gate()
	s.wrap.form = form
	b := s.gateOf(nil, form, params, true)
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

// wrapBatch runs one command. last is what the ReadyForQuery is to pgaccel.
func (s *session) wrapBatch(b []byte, sql string, last reply) []byte {
	b = s.command(b, sql)
	s.own(last)
	return appendEmpty(b, wire.Sync)
}

// wrapReady takes the ReadyForQuery of an own Sync.
func (s *session) wrapReady() action {
	w := &s.wrap
	failed := w.failed
	w.failed = false
	switch w.stage {
	case wrapAsking:
		s.gatePrepared[w.form] = !failed
		if failed || s.status != 'I' || engine.Unwrappable(w.gate) {
			w.stage = wrapDeclined
			return swallow
		}
		w.stage = wrapOpening
		s.toServer.add(s.wrapBatch(nil, beginSQL, replySync))
	case wrapOpening:
		switch {
		case s.status == 'T' && !failed:
			w.stage = wrapOpen
		case s.status == 'I':
			w.stage = wrapDeclined
		default:
			s.rollBack(replySync)
		}
	case wrapClosing:
		if s.status != 'I' {
			s.rollBack(replySync | replyShown)
			return swallow
		}
		s.wrap = wrap{}
		return relay
	}
	return swallow
}

// uncancelled forgets a cancel of a statement that is no step of its own.
func (w *wrap) uncancelled() { w.cancelled, w.cause = false, nil }

// rollBack leaves a block that has failed, which happens where a cancel request hits
// a message of pgaccel's.
func (s *session) rollBack(last reply) {
	if s.wrap.rollbacks++; s.wrap.rollbacks > rollbacksMax {
		s.lose()
		return
	}
	s.toServer.add(s.wrapBatch(nil, rollbackSQL, last))
}

// closeWrap ends the block behind the client's messages.
func (s *session) closeWrap(dst []byte) []byte {
	s.wrap.stage = wrapClosing
	return s.wrapBatch(dst, commitSQL, replySync|replyShown)
}
