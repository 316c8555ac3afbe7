package proxy

import (
	"pgaccel/plan"
	"pgaccel/wire"
)

// canceledError is said where the server does not let the session's role cancel the
// session (after SET ROLE); otherwise the server says it itself.
var canceledError = wire.ErrorFields{Severity: "ERROR", Code: queryCanceled, Message: "canceling statement due to user request",
	File: "postgres.c", Routine: "ProcessInterrupts"}

// cancelling is the stage of a local execution that the client has cancelled, while the server
// is made to say so.
type cancelling struct {
	passive
	cause []byte // what the client is told, if not that it has cancelled; nil for a cancel request
	told  bool   // a Query: that the client has been; ReadyForQuery follows
}

// cancelOnServer makes the server fail the statement, as if it had been running it
// when the cancel request came: in a transaction, that must fail too.
func (s *session) cancelOnServer(cause []byte) { s.toServer.add(s.cancelBatch(nil, cause)) }

// cancelBatch is what cancelOnServer sends.
func (s *session) cancelBatch(b, cause []byte) []byte {
	s.local.stage = &cancelling{cause: cause}
	if s.local.simple {
		s.queue.push(replyQuery | replyOwn)
		return appendQuery(b, cancelSQL)
	}
	return s.cancelExtended(b)
}

func (c *cancelling) failed(s *session, _ reply, body []byte) action {
	if s.local.simple {
		c.told = true
	} else {
		s.block = 0
		s.tell(false)
		s.finish()
	}
	switch {
	case c.cause != nil:
		s.ahead = c.cause
	case string(wire.ErrorField(body, 'C')) != queryCanceled:
		s.ahead = wire.AppendError(nil, canceledError)
	default:
		return relay
	}
	return swallow
}

func (c *cancelling) ready(s *session, k reply) action {
	switch {
	case c.told:
		return s.queryOver()
	case k&replyOwn == 0:
		return relay
	}
	s.handOver(plan.ReasonInternalError)
	return swallow
}

func (c *cancelling) answered(s *session) { s.handOver(plan.ReasonInternalError) }

// cancelExtended is it in a batch.
func (s *session) cancelExtended(b []byte) []byte {
	b = appendNamed(b, wire.Close, 'S', cancelName)
	b = appendParse(b, cancelName, cancelSQL, nil)
	b = appendBind(b, cancelName, cancelName, nil)
	b = appendExecute(b, cancelName, 0)
	b = appendNamed(b, wire.Close, 'P', cancelName)
	for _, k := range []reply{replyClose, replyParse, replyBind, replyExecute, replyClose} {
		s.own(k)
	}
	return appendEmpty(b, wire.Flush)
}

// cancel deals with a cancel request. It reports whether the query runs here; if
// not, the server is the one to ask.
func (s *session) cancel() bool {
	switch {
	case s.asking != nil:
		s.asking.cancelled = true
		return false
	case s.local == nil:
		s.implicit.cancelled = s.implicit.cancelled || s.implicit.busy() && s.implicit.stage != implicitClosing
		return false
	case s.cancelling():
		return false
	}
	s.local.cancelled = true
	s.dropSpeculation()
	switch st := s.local.stage.(type) {
	case *computing:
		st.execution.cancel()
		return true
	case *sending:
		return true
	}
	return false
}

// cancelling reports whether the local execution, which there is, is being cancelled.
func (s *session) cancelling() bool {
	_, ok := s.local.stage.(*cancelling)
	return ok
}

// cancelServed forgets a cancel request that has ended an earlier statement than the one at
// hand.
func (s *session) cancelServed() {
	if s.asking != nil {
		s.asking.cancelled = false
	}
	if s.local != nil {
		s.local.cancelled = false
	}
}

// abandon stops an execution whose session ends, or cannot be followed any more, and
// gives up what is kept for its transaction.
func (s *session) abandon() {
	s.tx.Close()
	s.releaseHeld()
	s.dropSpeculation()
	if s.local != nil {
		switch st := s.local.stage.(type) {
		case *computing:
			st.execution.cancel()
		case *checking:
			s.local.stage = passive{}
			st.check.drop("the session has ended")
		}
	}
	for _, c := range s.takeChecks() {
		c.drop("the session has ended")
	}
}

// end is abandon for a session whose connections are closed: nobody reads its results.
func (s *session) end() {
	s.abandon()
	s.over = true
	s.cache.forgetPortals()
	if s.local != nil {
		s.local.letGo(&s.cache)
	}
}
