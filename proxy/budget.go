package proxy

import "sync/atomic"

// budget bounds the bytes that all sessions together hold of messages that have come
// in part. A message for which there is no room is relayed as it comes, without a
// look, as one that is larger than lookLimit.
type budget struct {
	limit int64
	used  atomic.Int64
}

const (
	// heldMessages is the budget where none is given, in bytes.
	heldMessages = 64 << 20
	// smallMessage is the largest message in bytes that needs no room in the budget:
	// that much is held for a session in any case.
	smallMessage = 4 << 10
)

// reserve takes n bytes, if there are as many.
func (b *budget) reserve(n int) bool {
	if b.used.Add(int64(n)) <= b.limit {
		return true
	}
	b.used.Add(-int64(n))
	return false
}

func (b *budget) release(n int) { b.used.Add(-int64(n)) }

// looks reports whether a message of the client is held until it is whole, to be
// looked at.
func (s *session) looks(total int, whole bool) bool {
	switch {
	case total > lookLimit:
		return false
	case whole || total <= smallMessage || s.held == nil || s.reserved > 0:
		return true
	case !s.held.reserve(total):
		return false
	}
	s.reserved = total
	return true
}

// releaseHeld gives back what the message at hand has taken of the budget.
func (s *session) releaseHeld() {
	if s.reserved > 0 {
		s.held.release(s.reserved)
		s.reserved = 0
	}
}

// readAhead is how many bytes of the client may be held while the session cannot take
// them and still more be read.
func (s *session) readAhead() int {
	if s.login.waits() && !s.started {
		return 0
	}
	return heldLimit
}
