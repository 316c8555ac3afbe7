// Package replica makes the copies and keeps them up to date: it reads the server's
// catalog, copies the chosen tables at a snapshot, and applies what the logical
// replication stream brings.
//
//	stream --pgoutput.Assembler--> applier --+--> feed of a ready table: colstore.Relation
//	                                         +--> feed of a table being copied: changeQueue
//	manage: catalog, publication, batches of copies       (registry: which table is where)
//	watch:  snapshots for the store, the slot's log, lost identities, order of new texts
//	barrier: brings the stream's position to where queries wait for it
//	recheckServer: leaves a server that the address does not lead to any more (server.go)
//
// manage and watch poll the server while the stream moves, and seldom where it does not
// (activity).
//
// # Why a copy is right
//
// A copy holds exactly what its snapshot C sees. The stream brings every commit, in
// commit order, labelled with its top-level transaction id X. A transaction that C sees
// is in the copy, and is passed over; every other is applied, and the store shows it to
// the snapshots that see X. So the snapshot decides, not the log position: under load
// the two differ. The position passes a commit only when each table that it touches has
// taken the changes or been given up.
//
// Three ways to a snapshot that the stream has no hole under:
//
//   - The first copy uses the snapshot that the slot's creation exports. The slot's
//     creation waits for every transaction that was writing when it began, so that
//     the stream brings all that the snapshot does not see.
//   - A copy of a table that has been in the stream since is made at any plain
//     snapshot, taken after the table's queue began. What came before the queue and is
//     not seen by the snapshot, which is rare, makes the copy void.
//   - A table that joins the publication later waits until every transaction that
//     ran at that moment has ended: their earlier changes are not in the stream
//     (ALTER PUBLICATION tears them). Then a plain snapshot does.
//
// While a table is copied, its changes are queued as they came. When the copy is done,
// its own goroutine applies what is queued; the last bit is applied, and the table
// published, under the lock that the stream takes for each change: none is lost or
// applied twice, also where that happens in the middle of a transaction.
//
// Whatever a relation cannot take (no memory, a row that is not there, a value that
// cannot be held, a definition that does not fit, a transaction too large to be kept)
// makes that table forwarded, and it is copied again after a pause that grows. The
// others go on, and nobody's writes are held up.
//
// # DDL
//
// DDL is not in the stream. What keeps answers right is the fingerprint, which the gate
// reads in the client's own transaction: a table whose fingerprint is not the copy's is
// forwarded. The catalog is then read again, and the copy either gets the new
// definition and goes on (Relation.Redefine), or is made again. It goes on where the
// copied columns, the replica identity and the partitions are the same, and not both of
// the file (pg_relation_filenode) and the hash over pg_attribute have changed:
//
//   - The same file holds the same rows but for what the stream brings: nothing writes
//     rows in place without it.
//   - Another file with the same pg_attribute rows: VACUUM FULL, CLUSTER, SET
//     TABLESPACE, SET ACCESS METHOD keep the values; TRUNCATE is in the stream. A
//     rewrite that changes values (ALTER TYPE ... USING, a volatile default) changes
//     pg_attribute. SET UNLOGGED, which would take changes out of the stream, the
//     server refuses for a published table.
//   - Both have changed: the values may have. Two harmless changes look the same.
//
// This must hold between any two readings, so that a reading must not be torn: the file
// is read as of now, the rest as of a snapshot, and where pg_class.relfilenode says that
// they differ the catalog is read again (errTorn).
//
// The fingerprint also has the publications that name the table. Somebody's ALTER
// PUBLICATION of ours, after which the stream lacks changes, forwards the table from
// the next gate on; the next look at the catalog begins everything anew. (What an
// ALTER PUBLICATION and a writer do in the same instant may be visible in the other
// order; that is not covered.)
//
// A partitioned table is one table, its leaves are published, copied and changed each
// by itself; see partition.go. Another set of leaves is copied again.
//
// # What is read off the wire
//
// Sessions that copy, one a core, take ranges of pages off a queue (pageQueue), each into
// a writer of its own: the smallest tables first, and the largest with all sessions. They
// take at most a quarter of the connections that are free on the server (copySlots).
//
// The first copy is bound by how fast binary COPY data can be taken apart, so that
// connections which carry COPY or the stream are taken over from pgconn after
// login (rawConn) and framed here, without an allocation per message:
//
//	message     type 'd' | int32 length | payload
//	COPY row    int16 fields | fields x (int32 length, -1 for null | bytes)
//	COPY begin  "PGCOPY\n\377\r\n\0" | int32 flags | int32 extension length | extension
//	COPY end    int16 -1
//	XLogData    'w' | int64 start | int64 end | int64 time | pgoutput message
//	keepalive   'k' | int64 walEnd | int64 time | byte reply requested
//	status      'r' | int64 write, flush, apply | int64 time | byte reply requested
//
// All integers are big-endian. The server sends one COPY row per message
// (https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-COPY).
//
// # What is left on the server
//
// One publication, pgaccel_<instance>, of the chosen tables, and one temporary slot
// of the same name. Close drops both; with a data directory both stay, and the slot is
// permanent (see resume.go). A process that was killed leaves only the
// publication; the next one to start drops it (the living have a session whose
// application_name is the publication's name). The slot retains at most
// Config.MaxRetainedWAL of the server's log: beyond it, it is dropped, and everything is
// forwarded for a while. A published table that has lost its replica identity, so that
// its UPDATEs fail, is taken out within a quarter of a second.
package replica
