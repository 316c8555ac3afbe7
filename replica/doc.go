// Package replica makes and watches over the copies: it reads the server's
// catalog, copies the chosen tables at a snapshot, follows the logical replication
// stream and tells the store which table has changed since its copy. A changed
// table is copied again once it has become quiet.
//
// # Why a copy is right
//
// A copy holds exactly what its snapshot S sees. The stream then brings every
// commit, labelled with its top-level transaction id X, and the copy is what the
// server shows for as long as every X that changed the table is one that S sees.
// The first X that S does not see makes the table changed (Store.MarkChanged),
// before the stream's position passes the commit. So the snapshot decides, not
// the log position: under load the two differ.
//
// Three ways to a snapshot that the stream has no hole under:
//
//   - The first copy uses the snapshot that the slot's creation exports. The slot's
//     creation waits for every transaction that was writing when it began, so that
//     the stream brings all that the snapshot does not see.
//   - A copy of a table that has been in the stream since is made at any plain
//     snapshot.
//   - A table that joins the publication later waits until every transaction that
//     ran at that moment has ended: their earlier changes are not in the stream
//     (ALTER PUBLICATION tears them). Then a plain snapshot does.
//
// # What is read off the wire
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
// of the same name. Close drops both. A process that was killed leaves only the
// publication; the next one to start drops it (the living have a session whose
// application_name is the publication's name).
package replica
