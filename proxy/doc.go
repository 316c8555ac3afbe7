// Package proxy relays client sessions to Postgres and answers, where an
// engine.Decider says so, executions from pgaccel's own copy.
//
// Every client connection has its own upstream connection, which stays the
// authority on the session's state. A session has three layers:
//
//	server.go, handshake.go   listeners; the packets before authentication
//	database.go               which database a client asks for
//	session*.go, track.go     the protocol as a state machine without I/O: bytes of
//	                          either side in, bytes for either side out
//	login.go, budget.go       what it does before a client is let in; what it may hold
//	statement.go, cache.go    statements and portals that it may answer
//	local*.go, gate.go        the part of it that answers an execution here, a type a stage
//	answer.go                 its rows, on their way to the client
//	finish.go                 what the server runs of a statement over rows from here
//	secondgate.go             whether that has seen the same tables
//	copy.go                   COPY ... TO STDOUT, as far as it differs
//	explain.go                EXPLAIN, likewise
//	cursor.go                 DECLARE CURSOR, and FETCH from what it declares
//	finishcursor.go           a cursor over rows from here, of which the server runs a part
//	setting.go                settings of pgaccel's, set wrongly or shown
//	watch.go                  texts of what is relayed, for those that take long
//	observed.go               what is noted of a statement for a log or a trace
//	slowlog.go                the log of statements that take long, and the end of spans
//	info.go                   what others may see of the session
//	placeholder.go            what SQL finds in the place of a portal that is answered here
//	cancel.go                 cancel requests, and sessions that end amid it
//	planning.go               texts that are planned beside a session, so that no other waits
//	view.go                   the part that has the server run it over rows from here
//	shadow.go, implicit.go    the part that has the server answer, and compares
//	terminate.go              the end: clients are told, statements are cancelled
//	drive_*.go, loop_*.go     sockets around that machine: event loops for plaintext
//	                          (Linux), two goroutines for TLS and elsewhere
//
// Bytes are relayed as they came. What is only passed on is neither decoded nor
// copied: the machine walks over message headers in the read buffer and hands runs
// of messages to the writer. Measured on a select by primary key, the machine is 2 %
// of the loop's time, system calls are 95 %.
//
// Until the server has let a client in, no more of it is held than one read brings,
// and only credentials are relayed, whose length (65,535 bytes) the server checks. After that a
// message is held until it is whole if it has up to 1 MiB and all such messages of the process
// have room in Config.MessageMemory; else it is relayed as it comes, without a look.
//
// # What a client can notice
//
//   - Postgres sees pgaccel's address, not the client's: pg_hba.conf,
//     inet_client_addr() and pg_stat_ssl speak of that connection. A trust, peer or
//     ident line that fits pgaccel fits everybody who can reach pgaccel.
//   - In a batch with a candidate, the gate's Flush makes earlier answers come before
//     the client's own Flush or Sync.
//   - While an execution runs here, its backend is idle (in transaction): that is what
//     pg_stat_activity shows, idle_in_transaction_session_timeout goes on (it may end the
//     session amid the rows), and pg_cancel_backend does not reach it. Cancel requests and
//     pg_terminate_backend do.
//   - The gate, and behind it a SELECT of constants, show in pg_stat_activity, pg_stat_statements and the server's log, and so do
//     SAVEPOINT and RELEASE around it in a transaction block.
//   - SQL cannot use a portal that was made by Bind and begun here (placeholder.go): FETCH, MOVE,
//     WHERE CURRENT OF and functions that find it fail (0A000), and the session's named
//     portals are left to the server from then on. pg_cursors shows a text of pgaccel's for
//     it. A table that it reads can be truncated or altered meanwhile (Postgres: 55006).
//     FunctionCall ends an unnamed portal that was begun here.
//   - A cursor of SQL that is answered here is the server's, too, which has run nothing of it. Where anything but
//     FETCH comes, a MOVE of pgaccel's brings it to where the client is: that shows in pg_stat_statements and the
//     server's log, takes the time that the FETCHes would have taken, and its error is that of what came. Where rows are in no
//     order, the server gets a cursor of that name over the rows of pgaccel's: pg_cursors shows its text, and its columns are
//     of no table (RowDescription).
//   - That such a portal has gone with its transaction is reported with another
//     source line (field L, R) of Postgres than Execute's.
//   - Of a statement that is accelerated in part the rest runs as a statement of pgaccel's: that is what shows in pg_stat_activity,
//     pg_stat_statements, the server's log and current_query(); a table that it makes or fills likewise.
//   - Under Config.Shadow a statement that stands alone is run between BEGIN and COMMIT:
//     now() is the time of that BEGIN, and pg_stat_database counts the COMMIT.
//   - A SET of a setting of pgaccel's to what it cannot be runs as one of client_min_messages, which fails: that is in the
//     server's log. A SHOW of one runs as a SELECT, whose tag an Execute shows.
//   - A SELECT over the schema pgaccel runs as another text with a parameter more: that
//     is in pg_prepared_statements and the positions of errors, and a Bind with a wrong
//     number of values is told a number one higher. Once the session cannot be followed any
//     more, a Bind of such a prepared statement fails (08P01). Before each Bind of it a SELECT of
//     pgaccel's runs in the session's transaction.
//
// # Authentication through TLS
//
// Authentication is relayed message by message and pgaccel knows no passwords.
// SCRAM-SHA-256-PLUS binds the exchange to the certificate of the TLS connection, so
// that what works depends on both legs (measured with libpq 15; docs/wire.md,
// section 3):
//
//	client leg    server leg             SCRAM, libpq's default   md5, trust
//	plain         plain or Unix socket   works                    works
//	TLS here      plain or Unix socket   works, without binding   works
//	TLS here      TLS, same certificate  works, with binding      works
//	TLS here      TLS, other certificate fails: channel binding   works
//	plain         TLS                    works, without binding   works
//
// The last row works because the offer of SCRAM-SHA-256-PLUS is left out of the
// server's list (login.go): a client without TLS breaks off where it finds it. The
// row before cannot be mended that way, because a client with TLS signs whether it was
// offered; the error gets a hint.
//
// A server on this machine (loopback or Unix socket) that the URL allows to be reached
// with TLS and without (sslmode=prefer, which is the default, or allow) gets a
// connection like the client's: with TLS for clients with TLS, provided that the
// certificate is the same, else without. So every client logs in, and hostssl and
// hostnossl lines of pg_hba.conf hold. Other servers are reached as the URL says.
//
// Recommended: a Unix socket, loopback or the same certificate and key on the
// server leg. Certificate, GSS, SSPI, peer and ident authentication speak of the
// connection that Postgres sees, which is pgaccel's: they cannot be relayed.
package proxy
