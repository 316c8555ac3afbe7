package replica

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"

	"pgaccel/catalog"
	"pgaccel/replica/pgoutput"
)

// stream is the replication connection once START_REPLICATION is under way. run
// belongs to one goroutine, ping may be called by any.
type stream struct {
	conn      *rawConn
	assembler *pgoutput.Assembler
	advanced  func(lsn uint64) // told of each new position
	// eager acknowledges at once, because commits may be waiting for it: a logical
	// receiver counts under synchronous_standby_names = '*'.
	eager atomic.Bool
	seen  atomic.Uint64 // position reached
	saves atomic.Bool   // there is a data directory, and checkpoints are saved there
	saved atomic.Uint64 // position from which the last checkpoint goes on
	// expected is the marker that the log must have where a checkpoint is gone on from;
	// zero where there is none, or once it has come. foreign says that it did not come.
	// Both are run's.
	expected marker
	foreign  bool
	awaited  atomic.Pointer[string] // the id of the last marker that was written
	marked   atomic.Pointer[string] // that of the last one of ours that came
	// answered is signalled at each keepalive, without blocking.
	answered chan struct{}
}

const (
	ackInterval   = time.Second
	streamTimeout = 60 * time.Second // of silence; pings come every tenth of it
)

// start sends START_REPLICATION and waits for the answer.
func (s *stream) start(slot, publication string, version int) error {
	err := s.conn.query(fmt.Sprintf("START_REPLICATION SLOT %s LOGICAL 0/0 (%s)", catalog.QuoteIdentifier(slot), pgoutput.Options(version, publication)))
	if err != nil {
		return err
	}
	for {
		kind, body, err := s.conn.next()
		if err != nil {
			return err
		}
		switch kind {
		case 'W': // CopyBothResponse
			s.conn.timeout = streamTimeout
			return nil
		case 'E':
			return serverError(body)
		}
	}
}

// advance notes that everything before lsn has been taken in. It does not pass the
// place of a marker that should have come.
func (s *stream) advance(lsn uint64) {
	if s.expected.ID != "" && lsn >= s.expected.End {
		s.foreign = true
		return
	}
	if lsn > s.seen.Load() {
		s.seen.Store(lsn)
		s.advanced(lsn)
	}
}

// marker takes in a marker.
func (s *stream) marker(id string) {
	if s.expected.ID == id {
		s.expected = marker{}
	}
	// Other pgaccels of the database, or anybody, may write messages of this prefix, too.
	if awaited := s.awaited.Load(); awaited != nil && *awaited == id {
		s.marked.Store(&id)
	}
}

// durable is the position before which the server need not keep its log for us: what
// a new stream would begin at. Without a data directory copies do not outlive a stream,
// so that what has been seen is not needed again. Where commits may wait for us, they
// come first: after a restart everything is copied then.
func (s *stream) durable() uint64 {
	if s.saves.Load() && !s.eager.Load() {
		return s.saved.Load()
	}
	return s.seen.Load()
}

// run reads the stream until it fails.
func (s *stream) run() error {
	acked, ackedAt := uint64(0), time.Now()
	for {
		kind, body, err := s.conn.next()
		if err != nil {
			return err
		}
		reply := false
		switch kind {
		case 'd':
			if reply, err = s.data(body); err != nil {
				return err
			}
			if s.foreign {
				return errOtherHistory
			}
		case 'E':
			return streamError(body)
		case 'c':
			return fmt.Errorf("the server ended the stream")
		}
		if s.conn.buffered() && !reply {
			continue
		}
		due := reply || s.eager.Load() && s.durable() > acked
		if !due {
			due = time.Since(ackedAt) >= ackInterval
		}
		if due {
			acked, ackedAt = s.durable(), time.Now()
			if err := s.status(false); err != nil {
				return err
			}
		}
	}
}

// data takes in one CopyData message and returns whether the server wants a reply.
func (s *stream) data(b []byte) (reply bool, err error) {
	switch {
	case len(b) >= 25 && b[0] == 'w':
		return false, s.assembler.Message(b[25:])
	case len(b) >= 18 && b[0] == 'k':
		// walEnd is the end of the last record that was decoded and sent: a promise,
		// unlike the walEnd of data messages.
		s.advance(binary.BigEndian.Uint64(b[1:]))
		select {
		case s.answered <- struct{}{}:
		default:
		}
		return b[17] != 0, nil
	}
	return false, fmt.Errorf("bad message %q of %d bytes in the stream", b[:min(1, len(b))], len(b))
}

// ping asks the server how far it is; it answers at once with a keepalive.
func (s *stream) ping() error { return s.status(true) }

// status tells the server that it may forget everything before the durable position.
func (s *stream) status(reply bool) error {
	var b [5 + 34]byte
	b[0] = 'd'
	binary.BigEndian.PutUint32(b[1:], uint32(len(b)-1))
	b[5] = 'r'
	at := s.durable()
	for i := range 3 { // written, flushed, applied
		binary.BigEndian.PutUint64(b[6+8*i:], at)
	}
	binary.BigEndian.PutUint64(b[30:], uint64(time.Since(postgresEpoch).Microseconds()))
	if reply {
		b[38] = 1
	}
	return s.conn.write(b[:])
}

var postgresEpoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
