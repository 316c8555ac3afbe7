package pgoutput

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// errCorrupt is what Decode and Assembler.Message fail with where a message is not
// what the protocol says. errors.Is finds it.
var errCorrupt = errors.New("corrupt message in the replication stream")

// Decoder takes messages apart, without an allocation for those that bring rows. The
// zero value is ready.
type Decoder struct {
	m        Message
	old, new []Value
	oids     []uint32
}

// Decode decodes one message. inStream tells that it lies between Stream Start and
// Stream Stop. The result is valid until the next call.
func (d *Decoder) Decode(b []byte, inStream bool) (*Message, error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("%w: it is empty", errCorrupt)
	}
	return d.decode(Kind(b[0]), b[1:], inStream)
}

func (d *Decoder) decode(kind Kind, b []byte, inStream bool) (*Message, error) {
	m := &d.m
	*m = Message{Kind: kind}
	r := reader{b: b}
	switch kind {
	case KindInsert, KindUpdate, KindDelete:
		if inStream {
			m.XID = r.uint32()
		}
		m.OID = r.uint32()
		d.rows(kind, &r)
	case KindBegin:
		m.LSN, m.Time, m.XID = r.uint64(), int64(r.uint64()), r.uint32()
	case KindCommit:
		r.uint8()
		m.LSN, m.EndLSN, m.Time = r.uint64(), r.uint64(), int64(r.uint64())
	case KindRelation:
		if inStream {
			m.XID = r.uint32()
		}
		m.Relation = r.relation()
	case KindTruncate:
		if inStream {
			m.XID = r.uint32()
		}
		d.truncate(&r)
	case KindMessage:
		if inStream {
			m.XID = r.uint32()
		}
		m.Transactional = r.uint8()&1 != 0
		m.LSN, m.Prefix = r.uint64(), r.string()
		m.Content = r.bytes(int(r.uint32()))
	case KindType:
		if inStream {
			m.XID = r.uint32()
		}
		r.uint32()
		r.string()
		r.string()
	case KindOrigin:
		m.LSN = r.uint64()
		r.string()
	case KindStreamStart:
		m.XID, m.First = r.uint32(), r.uint8() != 0
	case KindStreamStop:
	case KindStreamCommit:
		m.XID = r.uint32()
		r.uint8()
		m.LSN, m.EndLSN, m.Time = r.uint64(), r.uint64(), int64(r.uint64())
	case KindStreamAbort:
		m.XID, m.SubXID = r.uint32(), r.uint32()
		if len(r.b) == 16 { // streaming 'parallel': the LSN and time of the abort
			r.b = nil
		}
	case kindBeginPrepare, kindPrepare, kindCommitPrepared, kindRollbackPrepared, kindStreamPrepare:
		return nil, fmt.Errorf("message %q of two-phase commit in the replication stream, which was not asked for (two_phase)", kind)
	default:
		return nil, fmt.Errorf("%w: unknown message %q", errCorrupt, kind)
	}
	if r.failed != "" {
		return nil, fmt.Errorf("%w: message %q of %d bytes: %s", errCorrupt, kind, len(b)+1, r.failed)
	}
	if len(r.b) > 0 {
		return nil, fmt.Errorf("%w: message %q is %d bytes too long", errCorrupt, kind, len(r.b))
	}
	return m, nil
}

// rows reads the tuples of an insert, update or delete.
func (d *Decoder) rows(kind Kind, r *reader) {
	m := &d.m
	mark := r.uint8()
	if kind != KindInsert && (mark == 'K' || mark == 'O') {
		m.OldKind = OldKey
		if mark == 'O' {
			m.OldKind = OldFull
		}
		d.old = r.tuple(d.old[:0])
		m.Old = d.old
		if kind == KindDelete {
			return
		}
		mark = r.uint8()
	}
	if mark != 'N' || kind == KindDelete {
		r.fail("a bad mark before a row")
		return
	}
	d.new = r.tuple(d.new[:0])
	m.New = d.new
}

func (d *Decoder) truncate(r *reader) {
	n := int(r.uint32())
	options := r.uint8()
	d.m.Cascade, d.m.Restart = options&1 != 0, options&2 != 0
	list := r.bytes(4 * n)
	d.oids = d.oids[:0]
	for ; len(list) >= 4; list = list[4:] {
		d.oids = append(d.oids, binary.BigEndian.Uint32(list))
	}
	d.m.OIDs = d.oids
}

// reader reads a message's fields from the front of b. After the first failure all
// reads return zeroes.
type reader struct {
	b      []byte
	failed string // what is wrong, "" for nothing
}

const cutOff = "it is cut off"

func (r *reader) fail(what string) {
	if r.failed == "" {
		r.failed = what
	}
	r.b = nil
}

func (r *reader) uint8() uint8 {
	if len(r.b) < 1 {
		r.fail(cutOff)
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

func (r *reader) uint16() uint16 {
	if len(r.b) < 2 {
		r.fail(cutOff)
		return 0
	}
	v := binary.BigEndian.Uint16(r.b)
	r.b = r.b[2:]
	return v
}

func (r *reader) uint32() uint32 {
	if len(r.b) < 4 {
		r.fail(cutOff)
		return 0
	}
	v := binary.BigEndian.Uint32(r.b)
	r.b = r.b[4:]
	return v
}

func (r *reader) uint64() uint64 {
	if len(r.b) < 8 {
		r.fail(cutOff)
		return 0
	}
	v := binary.BigEndian.Uint64(r.b)
	r.b = r.b[8:]
	return v
}

// bytes returns the next n bytes, in place.
func (r *reader) bytes(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.fail(cutOff)
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) string() string {
	n := bytes.IndexByte(r.b, 0)
	if n < 0 {
		r.fail("a string without its end")
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n+1:]
	return s
}

func (r *reader) relation() *Relation {
	rel := &Relation{OID: r.uint32(), Schema: r.string(), Name: r.string(), ReplicaIdentity: r.uint8()}
	n := int(r.uint16())
	if n > len(r.b) { // each takes more than a byte: nothing large is made for nothing
		r.fail(cutOff)
		return rel
	}
	rel.Columns = make([]Column, n)
	for i := range rel.Columns {
		rel.Columns[i] = Column{Key: r.uint8()&1 != 0, Name: r.string(), TypeOID: r.uint32(), Typmod: int32(r.uint32())}
	}
	return rel
}

// tuple appends the values of a tuple to dst, whose room it uses.
func (r *reader) tuple(dst []Value) []Value {
	n := int(r.uint16())
	b := r.b
	if n > len(b) {
		r.fail(cutOff)
		return dst
	}
	for range n {
		if len(b) == 0 {
			r.fail(cutOff)
			return dst
		}
		kind := ValueKind(b[0])
		switch kind {
		case ValueBinary, ValueText:
			if len(b) < 5 {
				r.fail(cutOff)
				return dst
			}
			size := uint(binary.BigEndian.Uint32(b[1:]))
			if size > uint(len(b)-5) {
				r.fail(cutOff)
				return dst
			}
			dst = append(dst, Value{kind, b[5 : 5+size : 5+size]})
			b = b[5+size:]
		case ValueNull, ValueUnchanged:
			dst = append(dst, Value{Kind: kind})
			b = b[1:]
		default:
			r.fail("a value of unknown kind")
			return dst
		}
	}
	r.b = b
	return dst
}
