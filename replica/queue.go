package replica

import (
	"encoding/binary"
	"fmt"

	"pgaccel/replica/pgoutput"
)

// changeQueue keeps what the stream brings of a table while it is copied, as it came:
//
//	'B' xid                 of a transaction
//	'I' relation row
//	'U' relation kind old row
//	'D' relation kind old
//	'T' part
//	'C' xid LSN             the transaction's end
//
// Numbers are unsigned varints, relation is a position in relations. A row is its
// number of values, each a kind and, of 'b' and 't', a length and the bytes.
type changeQueue struct {
	chunks    [][]byte
	bytes     int
	relations []*pgoutput.Relation
	last      *pgoutput.Relation // of relations
	lastAt    int
}

const (
	// queueLimit is the most that is kept of one table: where more comes during its
	// copy, the copy is outdated.
	queueLimit     = 64 << 20
	queueChunk     = 1 << 20
	queueSmall     = 256 << 10 // this much is applied while the stream waits
	opBegin        = 'B'
	opInsert       = 'I'
	opUpdate       = 'U'
	opDelete       = 'D'
	opTruncate     = 'T'
	opCommit       = 'C'
	queueRowGuess  = 64
	queueFirstSize = 4 << 10
)

// room returns the chunk to append to.
func (q *changeQueue) room() *[]byte {
	if n := len(q.chunks); n > 0 && cap(q.chunks[n-1])-len(q.chunks[n-1]) >= queueRowGuess {
		return &q.chunks[n-1]
	}
	size := queueChunk
	if len(q.chunks) == 0 {
		size = queueFirstSize
	}
	q.chunks = append(q.chunks, make([]byte, 0, size))
	return &q.chunks[len(q.chunks)-1]
}

// note appends a record; false where the queue is full.
func (q *changeQueue) note(f func(b []byte) []byte) bool {
	chunk := q.room()
	before := len(*chunk)
	*chunk = f(*chunk) // grows beyond a chunk's size where a row is that large
	q.bytes += len(*chunk) - before
	return q.bytes <= queueLimit
}

// relation returns the position of a definition.
func (q *changeQueue) relation(rel *pgoutput.Relation) uint64 {
	if q.last != rel {
		q.relations = append(q.relations, rel)
		q.last, q.lastAt = rel, len(q.relations)-1
	}
	return uint64(q.lastAt)
}

func (q *changeQueue) begin(xid uint64) bool {
	return q.note(func(b []byte) []byte { return binary.AppendUvarint(append(b, opBegin), xid) })
}

func (q *changeQueue) commit(xid, lsn uint64) bool {
	return q.note(func(b []byte) []byte {
		return binary.AppendUvarint(binary.AppendUvarint(append(b, opCommit), xid), lsn)
	})
}

func (q *changeQueue) change(op byte, rel *pgoutput.Relation, old pgoutput.Tuple, kind pgoutput.OldKind, row pgoutput.Tuple) bool {
	at := q.relation(rel)
	return q.note(func(b []byte) []byte {
		b = binary.AppendUvarint(append(b, op), at)
		if op != opInsert {
			b = appendTuple(append(b, byte(kind)), old)
		}
		if op != opDelete {
			b = appendTuple(b, row)
		}
		return b
	})
}

func (q *changeQueue) truncate(part uint32) bool {
	return q.note(func(b []byte) []byte { return binary.AppendUvarint(append(b, opTruncate), uint64(part)) })
}

func appendTuple(b []byte, t pgoutput.Tuple) []byte {
	b = binary.AppendUvarint(b, uint64(len(t)))
	for _, v := range t {
		b = append(b, byte(v.Kind))
		if v.Kind == pgoutput.ValueBinary || v.Kind == pgoutput.ValueText {
			b = append(binary.AppendUvarint(b, uint64(len(v.Data))), v.Data...)
		}
	}
	return b
}

// changeTarget takes a queue's records.
type changeTarget interface {
	begin(xid uint64) error
	change(op byte, rel *pgoutput.Relation, old pgoutput.Tuple, kind pgoutput.OldKind, row pgoutput.Tuple) error
	truncate(part uint32) error
	commit(xid, lsn uint64) error
}

// take returns what is queued, to be replayed, and leaves the queue empty.
func (q *changeQueue) take() *changeQueue {
	taken := *q
	*q = changeQueue{}
	return &taken
}

// replay gives the records, in order, to a target, and forgets them.
func (q *changeQueue) replay(to changeTarget) error {
	var old, row pgoutput.Tuple
	for i, b := range q.chunks {
		for len(b) > 0 {
			r := queueReader{b: b[1:]}
			var err error
			switch op := b[0]; op {
			case opBegin:
				err = to.begin(r.number())
			case opCommit:
				xid := r.number()
				err = to.commit(xid, r.number())
			case opTruncate:
				err = to.truncate(uint32(r.number()))
			case opInsert, opUpdate, opDelete:
				rel := q.relations[r.number()]
				kind := pgoutput.OldNone
				old, row = old[:0], row[:0]
				if op != opInsert {
					kind = pgoutput.OldKind(r.byte())
					old = r.tuple(old)
				}
				if op != opDelete {
					row = r.tuple(row)
				}
				err = to.change(op, rel, old, kind, row)
			default:
				panic(fmt.Sprintf("BUG: record %q in a queue", op))
			}
			if err != nil {
				return err
			}
			b = r.b
		}
		q.chunks[i] = nil
	}
	return nil
}

// queueReader reads what changeQueue wrote: nothing in it can be wrong.
type queueReader struct{ b []byte }

func (r *queueReader) number() uint64 {
	v, n := binary.Uvarint(r.b)
	r.b = r.b[n:]
	return v
}

func (r *queueReader) byte() byte {
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

func (r *queueReader) tuple(dst pgoutput.Tuple) pgoutput.Tuple {
	for range r.number() {
		v := pgoutput.Value{Kind: pgoutput.ValueKind(r.byte())}
		if v.Kind == pgoutput.ValueBinary || v.Kind == pgoutput.ValueText {
			n := r.number()
			v.Data = r.b[:n:n]
			r.b = r.b[n:]
		}
		dst = append(dst, v)
	}
	return dst
}
