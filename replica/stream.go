package replica

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"
)

// watcher reads the logical replication stream (pgoutput, protocol 1 or 2) as far
// as pgaccel needs it: which transaction changed which table, and how far the
// stream is. Rows are not looked at.
//
// https://www.postgresql.org/docs/current/protocol-logicalrep-message-formats.html
type watcher struct {
	// change tells of a committed transaction that changed a table. It is called
	// before advance passes its commit; for one transaction and table perhaps often.
	change func(oid, xid uint32)
	// advance tells that everything before lsn has been told of.
	advance func(lsn uint64)

	xid       uint32 // of the transaction at hand
	streaming bool   // between Stream Start and Stream Stop, of one that runs still
	// streamed collects the tables of transactions that run still, by their
	// top-level xid.
	streamed map[uint32]map[uint32]bool
	lastOID  uint32 // of the last change told of in this transaction, 0 for none
}

// pgoutput messages.
const (
	msgBegin        = 'B' // int64 commit LSN | int64 time | int32 xid
	msgCommit       = 'C' // int8 flags | int64 commit LSN | int64 end LSN | int64 time
	msgInsert       = 'I' // [int32 xid] | int32 relation | ...
	msgUpdate       = 'U' // likewise
	msgDelete       = 'D' // likewise
	msgTruncate     = 'T' // [int32 xid] | int32 count | int8 options | count x int32 relation
	msgStreamStart  = 'S' // int32 xid | int8 first
	msgStreamStop   = 'E'
	msgStreamCommit = 'c' // int32 xid | int8 flags | int64 commit LSN | int64 end LSN | int64 time
	msgStreamAbort  = 'A' // int32 xid | int32 subxid
	// Relation, type, origin and logical messages say nothing about rows.
	msgRelation, msgType, msgOrigin, msgMessage = 'R', 'Y', 'O', 'M'
)

// message takes in one pgoutput message.
func (w *watcher) message(b []byte) error {
	if len(b) == 0 {
		return fmt.Errorf("empty message in the stream")
	}
	kind, b := b[0], b[1:]
	short := func() error { return fmt.Errorf("stream message %q is cut off at %d bytes", kind, len(b)) }
	// Inside a streamed transaction each change begins with its (sub)transaction.
	prefix := 0
	if w.streaming {
		prefix = 4
	}
	switch kind {
	case msgBegin:
		if len(b) < 20 {
			return short()
		}
		w.xid, w.lastOID = binary.BigEndian.Uint32(b[16:]), 0
	case msgCommit:
		if len(b) < 17 {
			return short()
		}
		w.advance(binary.BigEndian.Uint64(b[9:]))
	case msgInsert, msgUpdate, msgDelete:
		if len(b) < prefix+4 {
			return short()
		}
		w.changed(binary.BigEndian.Uint32(b[prefix:]))
	case msgTruncate:
		if len(b) < prefix+5 {
			return short()
		}
		n := int(binary.BigEndian.Uint32(b[prefix:]))
		list := b[prefix+5:]
		if n < 0 || len(list)/4 < n {
			return short()
		}
		for i := range n {
			w.changed(binary.BigEndian.Uint32(list[4*i:]))
		}
	case msgStreamStart:
		if len(b) < 4 {
			return short()
		}
		w.xid, w.streaming, w.lastOID = binary.BigEndian.Uint32(b), true, 0
	case msgStreamStop:
		w.streaming = false
	case msgStreamCommit:
		if len(b) < 21 {
			return short()
		}
		xid := binary.BigEndian.Uint32(b)
		for oid := range w.streamed[xid] {
			w.change(oid, xid)
		}
		delete(w.streamed, xid)
		w.advance(binary.BigEndian.Uint64(b[13:]))
	case msgStreamAbort:
		if len(b) < 8 {
			return short()
		}
		// An aborted subtransaction's tables stay: at worst a copy is made for nothing.
		if xid := binary.BigEndian.Uint32(b); xid == binary.BigEndian.Uint32(b[4:]) {
			delete(w.streamed, xid)
		}
	case msgRelation, msgType, msgOrigin, msgMessage:
	default:
		return fmt.Errorf("unknown message %q in the stream", kind)
	}
	return nil
}

func (w *watcher) changed(oid uint32) {
	if oid == w.lastOID {
		return
	}
	w.lastOID = oid
	if !w.streaming {
		w.change(oid, w.xid)
		return
	}
	if w.streamed == nil {
		w.streamed = map[uint32]map[uint32]bool{}
	}
	if w.streamed[w.xid] == nil {
		w.streamed[w.xid] = map[uint32]bool{}
	}
	w.streamed[w.xid][oid] = true
}

// stream is the replication connection once START_REPLICATION is under way. run
// belongs to one goroutine, ping may be called by any.
type stream struct {
	conn    *rawConn
	watcher watcher
	// eager acknowledges at once, because commits may be waiting for it: a logical
	// receiver counts under synchronous_standby_names = '*'.
	eager atomic.Bool
	seen  atomic.Uint64 // position reached
	// answered is signalled at each keepalive, without blocking.
	answered chan struct{}
}

const (
	ackInterval   = time.Second
	streamTimeout = 60 * time.Second // of silence; pings come every tenth of it
)

// start sends START_REPLICATION and waits for the answer.
func (s *stream) start(slot, publication string, version int) error {
	options := "proto_version '1'"
	if version >= 140000 {
		options = "proto_version '2', streaming 'true'"
	}
	err := s.conn.query(fmt.Sprintf("START_REPLICATION SLOT %s LOGICAL 0/0 (%s, publication_names %s)", quoteIdent(slot), options, quoteLiteral(quoteIdent(publication))))
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

// run reads the stream until it fails.
func (s *stream) run() error {
	advance := s.watcher.advance
	s.watcher.advance = func(lsn uint64) {
		if lsn > s.seen.Load() {
			s.seen.Store(lsn)
			advance(lsn)
		}
	}
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
		case 'E':
			return serverError(body)
		case 'c':
			return fmt.Errorf("the server ended the stream")
		}
		if s.conn.buffered() && !reply {
			continue
		}
		due := reply || s.eager.Load() && s.seen.Load() > acked
		if !due {
			due = time.Since(ackedAt) >= ackInterval
		}
		if due {
			acked, ackedAt = s.seen.Load(), time.Now()
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
		return false, s.watcher.message(b[25:])
	case len(b) >= 18 && b[0] == 'k':
		// walEnd is the end of the last record that was decoded and sent: a promise,
		// unlike the walEnd of data messages.
		s.watcher.advance(binary.BigEndian.Uint64(b[1:]))
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

// status tells the server that it may forget everything before the position seen.
func (s *stream) status(reply bool) error {
	var b [5 + 34]byte
	b[0] = 'd'
	binary.BigEndian.PutUint32(b[1:], uint32(len(b)-1))
	b[5] = 'r'
	at := s.seen.Load()
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
