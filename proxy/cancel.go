package proxy

import "pgaccel/wire"

// canceledError is said where the server does not let the session's role cancel the
// session (after SET ROLE); otherwise the server says it itself.
var canceledError = wire.ErrorFields{Severity: "ERROR", Code: queryCanceled, Message: "canceling statement due to user request",
	File: "postgres.c", Routine: "ProcessInterrupts"}

// cancelOnServer makes the server fail the statement, as if it had been running it
// when the cancel request came: in a transaction, that must fail too.
func (s *session) cancelOnServer() { s.toServer.add(s.cancelBatch(nil)) }

// cancelBatch is what cancelOnServer sends.
func (s *session) cancelBatch(b []byte) []byte {
	t := s.step
	t.cancelling, t.prefix = true, false
	if t.simple {
		s.queue.push(replyQuery | replyOwn)
		return appendQuery(b, cancelSQL)
	}
	return s.cancelExtended(b)
}

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
	t := s.step
	if s.asking != nil {
		s.asking.cancelled = true
		return false
	}
	if t == nil || t.cancelling {
		s.wrap.cancelled = s.wrap.cancelled || t == nil && s.wrap.busy() && s.wrap.stage != wrapClosing
		return false
	}
	t.cancelled = true
	s.dropSpeculation()
	if t.execution != nil {
		t.execution.cancel()
		return true
	}
	return t.sending
}

// cancelServed forgets a cancel request that has ended an earlier statement than the one at
// hand.
func (s *session) cancelServed() {
	if s.asking != nil {
		s.asking.cancelled = false
	}
	if t := s.step; t != nil && !t.cancelling {
		t.cancelled = false
	}
}

// abandon stops an execution whose session ends, or cannot be followed any more, and
// gives up what is kept for its transaction.
func (s *session) abandon() {
	s.tx.Close()
	s.releaseHeld()
	s.dropSpeculation()
	if s.step != nil && s.step.execution != nil {
		s.step.execution.cancel()
	}
	if c := s.checking(); c != nil {
		s.step.check = nil
		c.drop("the session has ended")
	}
	for _, c := range s.takeChecks() {
		c.drop("the session has ended")
	}
}

// end is abandon for a session whose connections are closed: nobody reads its results.
func (s *session) end() {
	s.abandon()
	s.over = true
	s.known.forgetPortals()
	if s.step != nil {
		s.step.letGo(&s.known)
	}
}
