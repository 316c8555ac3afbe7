package replica

import (
	"sync"
	"time"
)

// Health is what there is to say of the stream, and of what has become of it.
type Health struct {
	Connected bool
	// LagBytes is how far the stream is behind the flushed log of the server, as of about a second ago, and Lag for how
	// long it has been so by more than the last record or two. Both are 0 while there is no stream.
	LagBytes int64
	Lag      time.Duration
	Streams  int64 // that have come up
	Copies   int64 // of tables that were completed
	Recopies int64 // of these, such as were not the table's first
	// LastError is the last reason why the stream ended or could not begin, or why columns could not be saved; "" for none.
	LastError   string
	LastErrorAt time.Time
	// Saved is when the columns were last found to be saved, or were; zero before, and without Config.DataDir.
	Saved        time.Time
	SaveFailures int64
}

// health counts over the streams of a Replicator. It is safe for concurrent use.
type health struct {
	mu     sync.Mutex
	said   Health
	copied map[uint32]bool // tables that have been, by OID
	ahead  []logEnd        // positions that the stream has not passed, the oldest first
	passed uint64          // the position that it has
}

// logEnd is where the server's log ended at a time.
type logEnd struct {
	position uint64
	at       time.Time
}

// logEndsMax bounds health.ahead. Beyond it every second one is forgotten but the oldest, which is what counts.
const logEndsMax = 512

func newHealth() *health { return &health{copied: map[uint32]bool{}} }

// failed notes an error.
func (h *health) failed(err error, saving bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said.LastError, h.said.LastErrorAt = err.Error(), time.Now()
	if saving {
		h.said.SaveFailures++
	}
}

// saved notes that the columns are.
func (h *health) saved() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said.Saved = time.Now()
}

// completed notes a copy of a table.
func (h *health) completed(oid uint32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said.Copies++
	if h.copied[oid] {
		h.said.Recopies++
	}
	h.copied[oid] = true
}

// began notes that there is a stream.
func (h *health) began() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said.Streams++
	h.said.LagBytes, h.ahead = 0, nil
}

// looked notes where the server's log ends, and what of it the stream has passed.
func (h *health) looked(end, passed uint64, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.passed, h.said.LagBytes = passed, 0
	if end > passed {
		h.said.LagBytes = int64(end - passed)
	}
	h.forget(passed)
	if end <= passed+behindMin || len(h.ahead) > 0 && h.ahead[len(h.ahead)-1].position == end {
		return
	}
	if len(h.ahead) == logEndsMax {
		for i := 1; 2*i < logEndsMax; i++ {
			h.ahead[i] = h.ahead[2*i]
		}
		h.ahead = h.ahead[:logEndsMax/2]
	}
	h.ahead = append(h.ahead, logEnd{end, now})
}

// forget drops the positions that the stream has passed, or nearly.
func (h *health) forget(passed uint64) {
	n := 0
	for n < len(h.ahead) && h.ahead[n].position <= passed+behindMin {
		n++
	}
	h.ahead = h.ahead[n:]
}

// now returns what there is to say. passed is the position that the stream has passed.
func (h *health) now(connected bool, passed uint64) Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	said := h.said
	said.Connected = connected
	if !connected {
		said.LagBytes = 0
		return said
	}
	said.LagBytes = max(0, said.LagBytes-int64(max(passed, h.passed)-h.passed))
	if h.forget(passed); len(h.ahead) > 0 {
		said.Lag = time.Since(h.ahead[0].at)
	}
	return said
}

// Health returns what there is to say of the stream.
func (r *Replicator) Health() Health {
	return r.health.now(r.Connected(), r.cfg.Store.Applied())
}
