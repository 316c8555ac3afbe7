// Package pgoutput understands the logical replication stream of Postgres' own
// output plugin: protocol versions 1 to 4 (PostgreSQL 10 to 18), text and binary
// tuples, large transactions streamed while they run.
//
//	bytes --Decoder--> Message --Assembler--> Sink: whole committed transactions, in commit order
//
// # Messages
//
// A message is a letter and its fields, integers big-endian, strings ended by a zero
// (https://www.postgresql.org/docs/current/protocol-logicalrep-message-formats.html):
//
//	B begin            int64 commit LSN | int64 time | int32 xid
//	C commit           int8 flags | int64 commit LSN | int64 end LSN | int64 time
//	R relation         [xid] int32 oid | schema | name | int8 replica identity | int16 n | n x (int8 key | name | int32 type | int32 typmod)
//	Y type             [xid] int32 oid | schema | name
//	O origin           int64 LSN | name
//	I insert           [xid] int32 oid | 'N' tuple
//	U update           [xid] int32 oid | ['K' tuple | 'O' tuple] | 'N' tuple
//	D delete           [xid] int32 oid | 'K' tuple or 'O' tuple
//	T truncate         [xid] int32 n | int8 options | n x int32 oid
//	M logical message  [xid] int8 flags | int64 LSN | prefix | int32 length | bytes
//	S stream start     int32 xid | int8 first
//	E stream stop
//	c stream commit    int32 xid | int8 flags | int64 commit LSN | int64 end LSN | int64 time
//	A stream abort     int32 xid | int32 subxid | [int64 LSN | int64 time]
//	tuple              int16 n | n x ('n' | 'u' | 't' int32 length bytes | 'b' int32 length bytes)
//
// [xid] is there between S and E only: the subtransaction that made the change. The
// messages of two-phase commit (b P K r p) are refused, because Options does not ask
// for them: a prepared transaction comes at COMMIT PREPARED, as any other.
//
// # Streamed transactions
//
// The server sends a transaction that outgrows logical_decoding_work_mem in pieces
// while it runs, between those of others. The Assembler keeps the raw messages until
// its end is known:
//
//	S 7 | R I I(8) I(8) | E   B 9 ... C   S 7 | I | E   A 7 8   S 7 | R I | E   c 7
//	      |   kept: R I, run of 8, I, ...               run of 8 dropped         Begin 7, changes, Commit 7
//
// The server sends a relation's definition once to each streamed transaction, and
// again after each abort of one of its subtransactions (schema_sent and streamed_txns
// in pgoutput.c). Therefore a definition inside a stream counts for that stream's
// changes only, and is lost with its subtransaction; when the stream commits, it
// counts for all, unless a newer one has come since.
package pgoutput
