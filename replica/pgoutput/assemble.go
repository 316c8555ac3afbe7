package pgoutput

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

// defaultLimit is the most bytes that an Assembler keeps of streamed transactions,
// unless it is told otherwise.
const defaultLimit = 256 << 20

// Assembler makes whole committed transactions of messages and gives them to a Sink.
// A transaction that the server sends at its commit is handed on row by row as it
// comes; one that it streams is kept until it commits. It belongs to one goroutine.
type Assembler struct {
	sink    Sink
	limit   int
	decoder Decoder

	// open says that a transaction, xid, was begun and not yet ended.
	open bool
	xid  uint32
	// defs are the definitions that count where a change is handed on: global, or
	// those of the streamed transaction at hand.
	defs, global map[uint32]definition
	told         map[uint32]*Relation // what the sink was told last
	ready        *Relation            // the relation used last, which the sink has been told; or nil
	arrivals     uint64               // definitions received

	streams map[uint32]*streamed
	current *streamed // between Stream Start and Stream Stop
	held    int       // bytes that streams hold
}

// definition is a Relation and when it came.
type definition struct {
	rel     *Relation
	arrival uint64
}

// NewAssembler returns an assembler that gives transactions to sink and keeps at most
// limit bytes of streamed ones; 0 is defaultLimit. A stream that is begun anew
// (START_REPLICATION) needs a new one.
func NewAssembler(sink Sink, limit int) *Assembler {
	if limit <= 0 {
		limit = defaultLimit
	}
	global := map[uint32]definition{}
	return &Assembler{sink: sink, limit: limit, defs: global, global: global,
		told: map[uint32]*Relation{}, streams: map[uint32]*streamed{}}
}

// Held returns the bytes that are kept of streamed transactions, and of how many.
func (a *Assembler) Held() (bytes, transactions int) { return a.held, len(a.streams) }

// Message takes in one message; b is not kept. An error is the Sink's, or it is
// errCorrupt or says what the server should not have sent: no further message may
// follow then.
func (a *Assembler) Message(b []byte) error {
	if a.current != nil {
		return a.streamMessage(b)
	}
	m, err := a.decoder.Decode(b, false)
	if err != nil {
		return err
	}
	switch m.Kind {
	case KindBegin:
		if a.open {
			return misplaced(m.Kind)
		}
		a.open, a.xid, a.ready = true, m.XID, nil
		return a.sink.Begin(m.XID)
	case KindCommit:
		if !a.open {
			return misplaced(m.Kind)
		}
		a.open = false
		return a.sink.Commit(a.xid, m.LSN, m.EndLSN)
	case KindStreamStart:
		if a.open {
			return misplaced(m.Kind)
		}
		s := a.streams[m.XID]
		if m.First != (s == nil) {
			return misplaced(m.Kind)
		}
		if s == nil {
			s = newStreamed(m.XID)
			a.streams[m.XID] = s
		}
		a.current = s
		return nil
	case KindStreamCommit:
		if a.open {
			return misplaced(m.Kind)
		}
		xid, lsn, end := m.XID, m.LSN, m.EndLSN // m is used again below
		s := a.streams[xid]
		if s == nil {
			s = newStreamed(xid) // nothing of it was sent
		}
		a.forget(s)
		return a.replay(s, lsn, end)
	case KindStreamAbort:
		if a.open {
			return misplaced(m.Kind)
		}
		s := a.streams[m.XID]
		switch {
		case s == nil: // nothing of it was sent
		case m.XID == m.SubXID:
			a.forget(s)
		default:
			before := s.bytes()
			s.abort(m.SubXID)
			a.held += s.bytes() - before
		}
		return nil
	case KindStreamStop:
		return misplaced(m.Kind)
	case KindMessage:
		if m.Transactional && !a.open {
			return misplaced(m.Kind)
		}
	case KindInsert, KindUpdate, KindDelete, KindTruncate:
		if !a.open {
			return misplaced(m.Kind)
		}
	}
	return a.apply(m)
}

func misplaced(kind Kind) error {
	return fmt.Errorf("%w: message %q at a place where it cannot be", errCorrupt, kind)
}

// apply hands on a change, or notes a definition that counts for all.
func (a *Assembler) apply(m *Message) error {
	switch m.Kind {
	case KindInsert:
		if err := a.use(m.OID, m.New); err != nil {
			return err
		}
		return a.sink.Insert(m.OID, m.New)
	case KindUpdate:
		if err := a.use(m.OID, m.New); err != nil {
			return err
		}
		if m.OldKind != OldNone && len(m.Old) != len(m.New) {
			return fmt.Errorf("%w: an update whose old row has %d columns and its new row %d", errCorrupt, len(m.Old), len(m.New))
		}
		return a.sink.Update(m.OID, m.Old, m.OldKind, m.New)
	case KindDelete:
		if err := a.use(m.OID, m.Old); err != nil {
			return err
		}
		return a.sink.Delete(m.OID, m.Old, m.OldKind)
	case KindTruncate:
		return a.sink.Truncate(m.OIDs, m.Cascade, m.Restart)
	case KindMessage:
		return a.sink.Message(m.Transactional, m.LSN, m.Prefix, m.Content)
	case KindRelation:
		a.global[m.Relation.OID], a.ready = definition{m.Relation, a.arrived()}, nil
	}
	return nil
}

func (a *Assembler) arrived() uint64 {
	a.arrivals++
	return a.arrivals
}

// use makes sure that the sink knows the definition under which row was sent.
func (a *Assembler) use(oid uint32, row Tuple) error {
	if a.ready == nil || oid != a.ready.OID {
		def, ok := a.defs[oid]
		if !ok {
			return fmt.Errorf("%w: a change of relation %d, whose definition was not sent", errCorrupt, oid)
		}
		if told := a.told[oid]; told != def.rel {
			if told == nil || !told.Equal(def.rel) {
				if err := a.sink.Relation(def.rel); err != nil {
					return err
				}
			}
			a.told[oid] = def.rel
		}
		a.ready = def.rel
	}
	if n := len(a.ready.Columns); n != len(row) {
		return fmt.Errorf("%w: a row of %d columns for relation %d, which has %d", errCorrupt, len(row), oid, n)
	}
	return nil
}

// streamMessage takes in a message between Stream Start and Stream Stop.
func (a *Assembler) streamMessage(b []byte) error {
	if len(b) == 0 {
		return fmt.Errorf("%w: it is empty", errCorrupt)
	}
	s, kind := a.current, Kind(b[0])
	if kind == KindStreamStop {
		a.current = nil
		return nil
	}
	if len(b) < 9 {
		return fmt.Errorf("%w: message %q of %d bytes", errCorrupt, kind, len(b))
	}
	before := s.bytes()
	switch kind {
	case KindInsert, KindUpdate, KindDelete:
		s.enter(binary.BigEndian.Uint32(b[1:]))
		s.touch(binary.BigEndian.Uint32(b[5:]))
	default:
		m, err := a.decoder.Decode(b, true)
		if err != nil {
			return err
		}
		switch kind {
		case KindTruncate:
			s.enter(m.XID)
			for _, oid := range m.OIDs {
				s.touch(oid)
			}
		case KindMessage:
			s.enter(m.XID)
		case KindRelation:
			s.enter(m.XID)
			s.definitions = append(s.definitions, definition{m.Relation, a.arrived()})
		case KindType, KindOrigin:
			return nil
		default:
			return misplaced(kind)
		}
	}
	if s.tooLarge {
		a.held += s.bytes() - before
		return nil
	}
	s.keep(b)
	a.held += s.bytes() - before
	for a.held > a.limit && a.dropLargest() {
	}
	return nil
}

// dropLargest gives up what is kept of the transaction that holds most, and reports
// whether there was one.
func (a *Assembler) dropLargest() bool {
	var largest *streamed
	for _, s := range a.streams {
		if largest == nil || s.capacity > largest.capacity {
			largest = s
		}
	}
	if largest == nil || largest.tooLarge {
		return false
	}
	a.held -= largest.capacity
	largest.drop()
	return true
}

func (a *Assembler) forget(s *streamed) {
	if a.streams[s.xid] == s {
		a.held -= s.bytes()
		delete(a.streams, s.xid)
	}
}

// replay hands on a streamed transaction that has committed.
func (a *Assembler) replay(s *streamed, lsn, end uint64) error {
	if err := a.sink.Begin(s.xid); err != nil {
		return err
	}
	var err error
	if s.tooLarge {
		err = a.sink.TooLarge(s.xid, slices.Sorted(maps.Keys(s.touched)))
	} else {
		err = a.replayChanges(s)
	}
	if err != nil {
		return err
	}
	// The server takes these definitions as known from now on, to all.
	for _, def := range s.definitions {
		if oid := def.rel.OID; a.global[oid].arrival < def.arrival {
			a.global[oid] = def
		}
	}
	return a.sink.Commit(s.xid, lsn, end)
}

func (a *Assembler) replayChanges(s *streamed) error {
	a.defs, a.ready = map[uint32]definition{}, nil
	defer func() { a.defs, a.ready = a.global, nil }()
	definitions := s.definitions
	return s.each(func(b []byte) error {
		if Kind(b[0]) == KindRelation {
			def := definitions[0]
			definitions = definitions[1:]
			a.defs[def.rel.OID], a.ready = def, nil
			return nil
		}
		m, err := a.decoder.Decode(b, true)
		if err != nil {
			return err
		}
		return a.apply(m)
	})
}
