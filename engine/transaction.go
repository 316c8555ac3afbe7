package engine

import (
	"sync"
	"sync/atomic"

	"pgaccel/colstore"
)

// Transaction is what an engine keeps for a session's transaction, the snapshot that
// REPEATABLE READ holds on to, and what it remembers of the session. The zero value is ready. It belongs to its session;
// an execution may still be at it when the session ends.
type Transaction struct {
	mu       sync.Mutex
	snapshot string // that is kept; empty for none
	release  func()
	closed   bool
	number   uint64 // of the session, from the first call of caller on

	// shapes are those of statements that the session's gate let pass when it was last
	// asked about them, and settings are what it said then.
	shapes   map[*shape]struct{}
	settings supposition
}

// shapesPassedMax bounds what is remembered of a session; then it begins anew.
const shapesPassedMax = 64

// supposition is what the next gate of a session is supposed to say: pgaccel.device, pgaccel.index,
// pgaccel.reuse and TimeZone.
type supposition struct{ device, index, reuse, timeZone string }

// passed notes that the gate let a statement pass.
func (t *Transaction) passed(sh *shape, settings supposition) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settings = settings
	if _, ok := t.shapes[sh]; ok || t.closed {
		return
	}
	if t.shapes == nil || len(t.shapes) >= shapesPassedMax {
		t.shapes = map[*shape]struct{}{}
	}
	t.shapes[sh] = struct{}{}
}

// refused notes that it did not.
func (t *Transaction) refused(sh *shape) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.shapes, sh)
}

// expects reports whether the gate is expected to let a statement pass, with which
// settings, and the session's number. Not while a snapshot is kept: the newest
// versions are not those that it sees.
func (t *Transaction) expects(sh *shape) (settings supposition, caller uint64, ok bool) {
	t.mu.Lock()
	_, ok = t.shapes[sh]
	ok = ok && t.snapshot == ""
	settings = t.settings
	t.mu.Unlock()
	if !ok {
		return supposition{}, 0, false
	}
	return settings, t.caller(), true
}

var sessions atomic.Uint64

// caller returns a number of the session's own: a device is shared fairly among callers.
func (t *Transaction) caller() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.number == 0 {
		t.number = sessions.Add(1)
	}
	return t.number
}

// End gives up what was kept.
func (t *Transaction) End() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end()
}

// Close is End, and nothing is kept from then on.
func (t *Transaction) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end()
	t.closed = true
}

func (t *Transaction) end() {
	if t.release != nil {
		t.release()
		t.release, t.snapshot = nil, ""
	}
}

// keep makes e keep what snap needs until the transaction ends. Another snapshot than
// before means another transaction (COMMIT AND CHAIN): a transaction has only one.
func (t *Transaction) keep(e *Engine, snap colstore.Snapshot, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.snapshot == text {
		return
	}
	t.end()
	t.release, t.snapshot = e.pin(snap), text
}

// pin is Store.Pin, counted.
func (e *Engine) pin(snap colstore.Snapshot) (release func()) {
	unpin := e.store.Pin(snap)
	e.pins.Add(1)
	return func() {
		e.pins.Add(-1)
		unpin()
	}
}

// Pins returns the number of snapshots that are kept for transactions and checks.
func (e *Engine) Pins() int64 { return e.pins.Load() }
