// Package wire knows the PostgreSQL frontend/backend protocol, version 3, as bytes:
// message framing, the packets that open a connection, the few messages that
// pgaccel itself says, and values in rows and parameters.
//
// A message is a type byte, a length that counts itself and the body, and the body:
//
//	+------+----------------+-----------------------+
//	| type | int32 length   | body, length-4 bytes  |
//	+------+----------------+-----------------------+
//
// The packets before authentication have no type byte:
//
//	+----------------+----------------+-----------------------------+
//	| int32 length   | int32 code     | body, length-8 bytes        |
//	+----------------+----------------+-----------------------------+
//
// where code is 80877103 (SSLRequest), 80877104 (GSSENCRequest), 80877102
// (CancelRequest: int32 process id, then a key of 4 to 256 bytes) or a protocol
// version, major in the upper 16 bits, followed by name and value pairs, each ended
// by a zero byte, and one more zero byte. All integers are big-endian.
//
// See "Message Formats" in the PostgreSQL manual, and the project's own
// docs/wire.md, whose W numbers the tests use.
package wire
