package pgoutput

// Sink takes committed transactions in the order of their commits. The Assembler
// calls it in the goroutine of its own Message; an error ends the stream, and Message
// returns it: what concerns one table only is not an error of the Sink.
//
// Tuples, lists and content are valid during the call only.
type Sink interface {
	// Begin tells that the transaction's changes follow, up to its Commit; it has
	// committed. xid is the top-level transaction's, also where subtransactions made
	// the changes.
	Begin(xid uint32) error
	// Relation tells of a relation's definition before the first change that uses it,
	// and before the next change whenever it is another. It is always within a
	// transaction.
	Relation(rel *Relation) error
	// Insert tells of a new row.
	Insert(oid uint32, row Tuple) error
	// Update tells of a changed row. old is empty for OldNone: row has the identity then.
	Update(oid uint32, old Tuple, kind OldKind, row Tuple) error
	// Delete tells of a row that is gone. kind is OldKey or OldFull.
	Delete(oid uint32, old Tuple, kind OldKind) error
	// Truncate tells of relations that were emptied, of partitions the leaves. No
	// Relation need have preceded.
	Truncate(oids []uint32, cascade, restart bool) error
	// Message tells of pg_logical_emit_message. One that is not transactional comes
	// outside of transactions, at once, whatever became of the transaction that sent it.
	Message(transactional bool, lsn uint64, prefix string, content []byte) error
	// TooLarge comes instead of the changes of a transaction that could not be kept:
	// the relations that it changed, and perhaps some that it did not (rolled back to
	// a savepoint).
	TooLarge(xid uint32, oids []uint32) error
	// Commit ends the transaction. endLSN is the position after its commit record.
	Commit(xid uint32, commitLSN, endLSN uint64) error
}
