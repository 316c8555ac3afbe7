package proxy

import (
	"bytes"
	"time"

	"pgaccel/engine"
	"pgaccel/plan"
	"pgaccel/wire"
)

// localExecution is one statement on its way to be answered here: a Query or an Execute. While
// there is one, the session takes no more from the client. It ends where the client has its
// rows or an error, or where the server has the statement, as if nothing had been.
type localExecution struct {
	simple   bool             // a Query; else an Execute
	decision engine.Decision  // that it follows; nil for a portal that goes on
	sql      string           // of a Query
	portal   *portal          // of an Execute
	max      int32            // its limit of rows, 0 for none
	copy     *engine.Copy     // what it is, if that is COPY ... TO STDOUT
	writer   *wire.CopyWriter // of its rows, once they are described
	explain  *engine.Explain  // what it is, if that is EXPLAIN
	cursor   *cursor          // that it declares, or that it is a FETCH from
	original []byte           // the client's Execute
	started  time.Time

	stage stage

	sampled   bool // to be checked, if it can be answered here
	cancelled bool // the client has cancelled; the server has yet to be made to say so
	ledBack   bool // behind a Sync of pgaccel's in its batch, messages lead out of the failed block

	eager       bool               // speculation is to be asked for
	speculation engine.Speculation // begun while the gate is under way; nil for none
	answer      *answer            // once it is computed
}

// stage is how far a local execution has come, a type each. Its methods are what the server
// may say meanwhile. A Query (Q) or an Execute (E) goes on to one of those on the right, or is
// forwarded; an error of the server's ends it.
//
//	runningPrefix  Q   the server runs the statements before the last one    gatingQuery
//	settling       E   it answers what came before                           gatingExecute, replacing
//	gatingQuery    Q   it describes the result and runs the gate             computing, sending, checking, undoingGate
//	gatingDeclare  Q   it runs the gate before a DECLARE (cursor.go)         declaring, undoingGate
//	declaring      Q E it runs the DECLARE                                   gatingQuery, if a FETCH is behind it
//	moving         Q   it brings cursors to where the client's are (cursor.go)
//	undoingGate    Q   it goes back behind a gate that the role may not run
//	gatingExecute  E   it runs the gate, and describes what is not known     computing, replacing, sending, checking, declaring
//	reopening      E   it says whether it has a portal that was begun here   sending
//	computing      Q E the engine computes, in a goroutine of the driver     finishing, redeclaring, replacing, sending
//	replacing      E   the server puts a placeholder into a portal's place   sending
//	finishing      Q E the server runs the rest of the statement over the rows (finish.go)
//	redeclaring    Q   it declares a cursor over the rest (finishcursor.go)
//	sending        Q E rows go to the client as fast as it takes them
//	cancelling     Q E the client has cancelled, the server is to say so
//	checking       Q E the server answers, and pgaccel compares (shadow.go)
//
// A cancel request leads from each but the last to cancelling, once the server can be asked.
type stage interface {
	// row takes the body of a row of a statement of pgaccel's.
	row(body []byte)
	// described takes an answer to a Describe of pgaccel's.
	described(s *session, typ byte, message []byte)
	// answered is called when the server has answered all messages that an Execute has sent.
	answered(s *session)
	// failed takes an error in answer to a message of kind k. What the server skips because
	// of it has been taken off the queue.
	failed(s *session, k reply, body []byte) action
	// ready takes a ReadyForQuery to the message of kind k: the client's or, for a Query,
	// pgaccel's own.
	ready(s *session, k reply) action
}

// passive is a stage that waits for nothing of the server's. Others embed it for what does not
// concern them.
type passive struct{}

func (passive) row([]byte)                            {}
func (passive) described(*session, byte, []byte)      {}
func (passive) answered(*session)                     {}
func (passive) failed(*session, reply, []byte) action { return relay }
func (passive) ready(_ *session, k reply) (do action) {
	if k&replyOwn != 0 {
		return swallow
	}
	return relay
}

// passedOn reports whether the server answers a message of the client's for the local
// execution: statements before the one at hand, or that one under watch.
func (x *localExecution) passedOn() bool {
	switch x.stage.(type) {
	case *runningPrefix, *checking, *declaring:
		return true
	}
	return false
}

// own notes a message of pgaccel's; the answer will be swallowed.
func (s *session) own(k reply) { s.queue.push(k | replyOwn) }

// sample decides whether the statement is to be checked: what stands in a block, be it one
// that was opened for that.
func (s *session) sample() {
	x := s.local
	x.sampled = x.cursor == nil && x.explain == nil && (s.implicit.open() || s.share != nil && s.status == 'T' && x.max == 0 && s.share() && x.decision.Comparable())
}

// forward lets the server answer. A reason other than "" is counted. A cancel request that
// has come meanwhile may have found the server idle, and is for the client's statement.
func (s *session) forward(reason plan.Reason) {
	if s.local.cancelled {
		s.cancelOnServer(nil)
		return
	}
	s.handOver(reason)
}

// handOver is forward for a statement whose cancel the server knows of.
func (s *session) handOver(reason plan.Reason) {
	x := s.local
	if reason != "" && x.decision != nil {
		s.forwardedBy(x.decision, reason)
	} else if o := s.queue.at; o != nil {
		o.decision = x.decision
	}
	if s.implicit.open() && x.simple && s.status != 'T' {
		// Describing has failed, and the block with it: without one, then.
		s.toServer.add(s.commandBatch(nil, rollbackSQL, replySync))
		s.implicit = implicitTransaction{}
	}
	s.pass()
	s.tell(false)
	s.finish()
}

// pass passes the client's message on.
func (s *session) pass() {
	x := s.local
	message := x.original
	if x.simple {
		s.relayQuery()
		message = appendQuery(nil, x.sql)
	} else {
		if x.portal != nil {
			x.portal.forwarded = true
		}
		s.queue.push(replyExecute)
	}
	if x.decision != nil {
		s.queue.timed(x.decision, time.Now())
	}
	s.toServer.add(message)
	if x.simple && s.implicit.open() {
		s.toServer.add(s.commitImplicit(nil))
	}
}

// tell tells the observer who answers.
func (s *session) tell(accelerated bool) {
	if s.local.decision != nil && s.local.explain == nil {
		s.observer.Answered(accelerated, time.Since(s.local.started))
		switch {
		case accelerated && s.local.decision.Finish() != nil:
			s.info.partial.Add(1)
		case accelerated:
			s.info.accelerated.Add(1)
		}
	}
}

// finish ends the local execution.
func (s *session) finish() {
	if s.local.simple && s.status == 'I' {
		s.tx.End() // no ReadyForQuery of the server's will say that it is over
	}
	s.answeredOrFailed()
	s.dropSpeculation()
	s.local.letGo(&s.cache)
	s.local = nil
}

// relayOwn relays an error in answer to a message of pgaccel's. A position in a text that is
// not the client's means nothing to it.
func (s *session) relayOwn(body []byte) action {
	if wire.ErrorField(body, 'P') == nil {
		return relay
	}
	s.ahead = wire.AppendMessage(nil, wire.ErrorResponse, withoutPosition(body))
	return swallow
}

// withoutPosition returns the fields of an error but for P.
func withoutPosition(fields []byte) (out []byte) {
	for len(fields) > 1 {
		end := bytes.IndexByte(fields, 0) + 1
		if end == 0 {
			break
		}
		if fields[0] != 'P' {
			out = append(out, fields[:end]...)
		}
		fields = fields[end:]
	}
	return append(out, 0)
}

// SQLSTATEs.
const (
	queryCanceled    = "57014"
	ioError          = "58030"
	lockNotAvailable = "55P03"
	deadlockDetected = "40P01"
	noSuchStatement  = "26000"
	noSuchSchema     = "3F000"
)
