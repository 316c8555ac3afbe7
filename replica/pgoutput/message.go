package pgoutput

// Kind is a message's letter.
type Kind byte

// The messages. Those of two-phase commit are known only to be refused.
const (
	KindBegin        Kind = 'B'
	KindCommit       Kind = 'C'
	KindRelation     Kind = 'R'
	KindType         Kind = 'Y'
	KindOrigin       Kind = 'O'
	KindInsert       Kind = 'I'
	KindUpdate       Kind = 'U'
	KindDelete       Kind = 'D'
	KindTruncate     Kind = 'T'
	KindMessage      Kind = 'M'
	KindStreamStart  Kind = 'S'
	KindStreamStop   Kind = 'E'
	KindStreamCommit Kind = 'c'
	KindStreamAbort  Kind = 'A'

	kindBeginPrepare     Kind = 'b'
	kindPrepare          Kind = 'P'
	kindCommitPrepared   Kind = 'K'
	kindRollbackPrepared Kind = 'r'
	kindStreamPrepare    Kind = 'p'
)

// Message is one decoded message: Kind says which fields are set. Tuples, content
// and lists refer to the message's bytes or to the Decoder and are valid until the
// next Decode; Relation stays.
type Message struct {
	Kind Kind
	// XID is the transaction of B, S, c and A, and the (sub)transaction of a change
	// inside a stream; 0 for changes elsewhere.
	XID    uint32
	SubXID uint32 // A: the subtransaction that was rolled back; XID where all was
	First  bool   // S: the first piece of the transaction
	LSN    uint64 // B, C, c: of the commit record; M: of the message; O: at the origin
	EndLSN uint64 // C, c: the position after the commit record
	Time   int64  // B, C, c: of the commit, microseconds since 2000-01-01 UTC

	Relation *Relation // R
	OID      uint32    // I, U, D: of the relation
	Old, New Tuple     // I: New; U: New and perhaps Old; D: Old
	OldKind  OldKind

	OIDs             []uint32 // T
	Cascade, Restart bool     // T

	Transactional bool   // M
	Prefix        string // M
	Content       []byte // M
}

// Relation is a table's definition as the server sent it. It is immutable.
type Relation struct {
	OID             uint32
	Schema          string // empty for pg_catalog
	Name            string
	ReplicaIdentity byte // pg_class.relreplident: 'd', 'n', 'f', 'i'
	Columns         []Column
}

// Column is a column of a Relation: generated ones are not sent.
type Column struct {
	Key     bool // of the replica identity; all are under REPLICA IDENTITY FULL
	Name    string
	TypeOID uint32
	Typmod  int32
}

// Equal reports whether two definitions are the same.
func (r *Relation) Equal(o *Relation) bool {
	if r.OID != o.OID || r.Schema != o.Schema || r.Name != o.Name || r.ReplicaIdentity != o.ReplicaIdentity || len(r.Columns) != len(o.Columns) {
		return false
	}
	for i := range r.Columns {
		if r.Columns[i] != o.Columns[i] {
			return false
		}
	}
	return true
}

// OldKind says what is sent of a row before its change.
type OldKind uint8

// The old row images.
const (
	// OldNone: the replica identity has not changed and is not out of line.
	OldNone OldKind = iota
	// OldKey: the columns of the replica identity; the others are null without meaning
	// it.
	OldKey
	// OldFull: the row (REPLICA IDENTITY FULL).
	OldFull
)

// ValueKind says how a value is sent.
type ValueKind byte

// The kinds of values.
const (
	ValueNull      ValueKind = 'n'
	ValueUnchanged ValueKind = 'u' // out of line (TOAST), and the old row's
	ValueText      ValueKind = 't' // the type's output function's
	ValueBinary    ValueKind = 'b' // the type's send function's
)

// Value is one column of a row. Data is empty for null and unchanged ones.
type Value struct {
	Kind ValueKind
	Data []byte
}

// Tuple is a row, a value for each of the Relation's columns.
type Tuple []Value
