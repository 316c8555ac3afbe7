// Package proxy relays client sessions to Postgres and answers, where an
// engine.Decider says so, executions from pgaccel's own copy.
//
// Every client connection has its own upstream connection, which stays the
// authority on the session's state. A session has three layers:
//
//	server.go, handshake.go   listeners; the packets before authentication
//	session*.go, track.go     the protocol as a state machine without I/O: bytes of
//	                          either side in, bytes for either side out
//	drive_*.go                sockets around that machine: one event loop per core
//	                          for plaintext (Linux), two goroutines otherwise
//
// Bytes are relayed as they came. What is only passed on is neither decoded nor
// copied: the machine walks over message headers in the read buffer and hands runs
// of messages to the writer.
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
//	plain         TLS                    fails: PLUS offered      works
//
// Recommended: a Unix socket, loopback or the same certificate and key on the
// server leg. Certificate, GSS, SSPI, peer and ident authentication speak of the
// connection that Postgres sees, which is pgaccel's: they cannot be relayed.
package proxy
