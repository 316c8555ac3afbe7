package proxy

import (
	"time"

	"pgaccel/engine"
)

// Every message that makes the server answer has an entry in a queue, so that it is
// known whose answer comes next: the client's, to be relayed, or one of pgaccel's
// own, to be swallowed. An entry costs a byte; references to statements that the
// entry concerns stand in a second queue, used for candidates only.

// reply is what the server owes for one message.
type reply uint8

const (
	replyParse     reply = iota // 1
	replyBind                   // 2
	replyClose                  // 3
	replyStatement              // t, then T or n
	replyPortal                 // T or n
	replyExecute                // rows or a copy, then C, I or s
	replyCopyEnd                // nothing: CopyDone or CopyFail, which ends what Execute began
	replySync                   // Z
	replyQuery                  // anything, then Z
	replyFunction               // V, Z
	replyStartup                // the answers to the startup packet, up to Z

	replyKind  = 0x0f
	replyHeld  = 0x10 // the client's, but its ReadyForQuery is not relayed: another stands for it
	replyShown = 0x20 // own, but its ReadyForQuery is relayed
	replyOwn   = 0x40 // swallow it
	replyRef   = 0x80 // has an entry in the queue of references
)

// ref is what a message was about.
type ref struct {
	statement   *statement   // Parse, Describe
	portal      *portal      // Bind
	placeholder *portal      // Describe of it, or of the placeholder in its place
	view        *viewChange  // Parse, Close
	described   *engine.View // Describe
	query       bool         // Describe, which stands for a Query's
	rest        bool         // Execute, of what the server runs of a statement (finish.go)

	observed  *observed       // Query, Execute of the client
	forwarded engine.Decision // Query, Execute: that it counts for, since sent
	sent      time.Time
}

// replies is the queue. The zero value is empty.
type replies struct {
	kinds    []reply
	refs     []ref
	head     int // in kinds
	refHead  int
	executes int // entries of the client that run statements
	owns     int // entries of pgaccel's own
	// sent counts the entries of the client that run statements, those gone included.
	sent uint64
	// bound counts the client's Binds.
	bound uint64
	// at is the client's statement at hand, if it is observed: once it is on its way to the server its entry has it.
	at *observed
}

// repliesMax bounds the queue: a session beyond it is relayed without a look.
const repliesMax = 1 << 17

func (q *replies) len() int { return len(q.kinds) - q.head }

func (q *replies) push(k reply) {
	c := k &^ (replyHeld | replyRef)
	runs := c == replyExecute || c == replyQuery
	if runs {
		q.executes++
		q.sent++
	}
	if k&^replyRef == replyBind {
		q.bound++
	}
	if k&replyOwn != 0 {
		q.owns++
	}
	if q.head > 0 && len(q.kinds) == cap(q.kinds) {
		q.kinds = q.kinds[:copy(q.kinds, q.kinds[q.head:])]
		q.head = 0
	}
	q.kinds = append(q.kinds, k)
	if runs && q.at != nil {
		if q.at.code = ""; q.at.span != nil { // the code was of what was undone
			q.at.sent = time.Now()
		}
		q.attach(ref{observed: q.at})
		q.at = nil
	}
}

func (q *replies) pushRef(k reply, r ref) {
	q.push(k)
	if q.kinds[len(q.kinds)-1]&replyRef == 0 {
		q.attach(r)
		return
	}
	last := &q.refs[len(q.refs)-1]
	r.observed = last.observed
	*last = r
}

// attach gives the newest entry, which has none, a reference.
func (q *replies) attach(r ref) {
	q.kinds[len(q.kinds)-1] |= replyRef
	if q.refHead > 0 && len(q.refs) == cap(q.refs) {
		q.refs = q.refs[:copy(q.refs, q.refs[q.refHead:])]
		q.refHead = 0
	}
	q.refs = append(q.refs, r)
}

// timed has the newest entry, an execution that is forwarded, timed since sent; not where
// that is zero.
func (q *replies) timed(d engine.Decision, sent time.Time) {
	if sent.IsZero() {
		return
	}
	if q.kinds[len(q.kinds)-1]&replyRef == 0 {
		q.attach(ref{})
	}
	r := &q.refs[len(q.refs)-1]
	r.forwarded, r.sent = d, sent
}

// completed ends the timing of the oldest entry, if there is one. ok is false where the
// execution has failed or has not come to its end, which is not counted.
func (q *replies) completed(ok bool) {
	if q.kinds[q.head]&replyRef == 0 {
		return
	}
	r := &q.refs[q.refHead]
	if r.forwarded != nil && ok {
		r.forwarded.Completed(time.Since(r.sent))
	}
	r.forwarded = nil
}

// first returns the oldest entry; ok is false where nothing is owed.
func (q *replies) first() (k reply, ok bool) {
	if q.head == len(q.kinds) {
		return 0, false
	}
	return q.kinds[q.head], true
}

// ref returns the reference of the oldest entry.
func (q *replies) ref() ref {
	if q.kinds[q.head]&replyRef == 0 {
		return ref{}
	}
	return q.refs[q.refHead]
}

// observed returns the statement that the oldest entry is of; nil where it is not observed.
func (q *replies) observed() *observed {
	if q.head == len(q.kinds) {
		return nil
	}
	return q.ref().observed
}

// pop removes the oldest entry.
func (q *replies) pop() {
	k := q.kinds[q.head]
	q.head++
	if c := k &^ (replyHeld | replyRef); c == replyExecute || c == replyQuery {
		q.executes--
	}
	if k&replyOwn != 0 {
		q.owns--
	}
	if k&replyRef != 0 {
		q.refs[q.refHead] = ref{}
		q.refHead++
		if q.refHead == len(q.refs) {
			q.refs, q.refHead = q.refs[:0], 0
		}
	}
	if q.head == len(q.kinds) {
		q.kinds, q.head = q.kinds[:0], 0
		if cap(q.kinds) > 1<<12 {
			q.kinds = nil
		}
	}
}

// dropCopyEnds removes leading entries that nothing is owed for.
func (q *replies) dropCopyEnds() {
	for {
		if k, ok := q.first(); !ok || k != replyCopyEnd {
			return
		}
		q.pop()
	}
}

// copyBegins removes what the server ignores once it is in copy-in mode: Syncs that
// were sent behind the Execute or Query that began it, up to the end of the copy.
// ended says whether that end was sent already; odd, that something else stands
// before it, which the server takes for an error in a way not followed here.
func (q *replies) copyBegins() (ended, odd bool) {
	for i := q.head + 1; i < len(q.kinds); i++ {
		switch q.kinds[i] {
		case replyCopyEnd:
			q.kinds = append(q.kinds[:q.head+1], q.kinds[i+1:]...)
			return true, false
		case replySync:
		default:
			return false, true
		}
	}
	q.kinds = q.kinds[:q.head+1]
	return false, false
}
