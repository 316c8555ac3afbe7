package pgoutput

import "encoding/binary"

// streamed is a transaction that the server sends while it runs: its messages as they
// came, in chunks, and where each subtransaction's first lies.
//
//	chunk  records: uint32 length | message
//
// Nothing but a subtransaction and its inner ones makes changes between its start and
// its rollback, or else what it was released into is rolled back with it. Therefore a
// rollback cuts off all from the subtransaction's first message on, as Postgres' own
// subscriber does (stream_abort_internal in worker.c).
type streamed struct {
	xid         uint32
	chunks      [][]byte // each filled up to its length
	capacity    int      // of the chunks together
	definitions []definition
	subs        []sub
	subIndex    map[uint32]int // xid -> position in subs
	lastXID     uint32         // of the message kept last
	touched     map[uint32]struct{}
	lastTouched uint32
	tooLarge    bool // the messages were dropped, and are no longer kept
}

// sub is where a (sub)transaction's first message lies.
type sub struct {
	xid           uint32
	chunk, offset int
	definitions   int // before it
}

const (
	recordHeader   = 4
	firstChunkSize = 16 << 10 // doubled up to
	chunkSize      = 1 << 20
	subSize        = 32 + 40 // of an entry of subs and of subIndex, about
)

func newStreamed(xid uint32) *streamed {
	return &streamed{xid: xid, touched: map[uint32]struct{}{}, subIndex: map[uint32]int{}}
}

// bytes returns the memory that s holds, about.
func (s *streamed) bytes() int { return s.capacity + subSize*len(s.subs) }

func (s *streamed) touch(oid uint32) {
	if oid != s.lastTouched {
		s.touched[oid] = struct{}{}
		s.lastTouched = oid
	}
}

// enter notes which subtransaction the next message is of.
func (s *streamed) enter(xid uint32) {
	if xid == s.lastXID {
		return
	}
	s.lastXID = xid
	if _, known := s.subIndex[xid]; !known {
		at := sub{xid: xid, chunk: len(s.chunks), definitions: len(s.definitions)}
		if at.chunk > 0 {
			at.chunk--
			at.offset = len(s.chunks[at.chunk])
		}
		s.subIndex[xid] = len(s.subs)
		s.subs = append(s.subs, at)
	}
}

// keep copies a message.
func (s *streamed) keep(b []byte) {
	need := recordHeader + len(b)
	last := len(s.chunks) - 1
	if last < 0 || cap(s.chunks[last])-len(s.chunks[last]) < need {
		size := max(need, min(firstChunkSize<<min(len(s.chunks), 8), chunkSize))
		s.chunks = append(s.chunks, make([]byte, 0, size))
		s.capacity += size
		last++
	}
	c := binary.BigEndian.AppendUint32(s.chunks[last], uint32(len(b)))
	s.chunks[last] = append(c, b...)
}

// abort drops what subtransaction xid did.
func (s *streamed) abort(xid uint32) {
	i, known := s.subIndex[xid]
	if !known {
		return
	}
	cut := s.subs[i]
	for _, gone := range s.subs[i:] {
		delete(s.subIndex, gone.xid)
	}
	s.subs, s.lastXID = s.subs[:i], 0
	s.definitions = s.definitions[:cut.definitions]
	for len(s.chunks) > cut.chunk+1 {
		last := len(s.chunks) - 1
		s.capacity -= cap(s.chunks[last])
		s.chunks[last] = nil
		s.chunks = s.chunks[:last]
	}
	if len(s.chunks) > cut.chunk {
		s.chunks[cut.chunk] = s.chunks[cut.chunk][:cut.offset]
	}
}

// drop gives the messages up: the transaction is too large. Where its
// subtransactions begin is still needed for the definitions.
func (s *streamed) drop() {
	s.chunks, s.capacity, s.tooLarge = nil, 0, true
	for i := range s.subs {
		s.subs[i].chunk, s.subs[i].offset = 0, 0
	}
}

// each calls f with the messages, in order.
func (s *streamed) each(f func(b []byte) error) error {
	for _, c := range s.chunks {
		for len(c) > 0 {
			n := recordHeader + int(binary.BigEndian.Uint32(c))
			if err := f(c[recordHeader:n]); err != nil {
				return err
			}
			c = c[n:]
		}
	}
	return nil
}
