package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Codes in the place of a protocol version in a connection's first packet.
const (
	CancelRequestCode uint32 = 80877102
	SSLRequestCode    uint32 = 80877103
	GSSENCRequestCode uint32 = 80877104
)

// Version30 and Version32 are protocol versions; 3.2 is the newest whose messages
// pgaccel knows (cancel keys of up to 256 bytes).
const (
	Version30 uint32 = 3 << 16
	Version32 uint32 = 3<<16 | 2
)

// MaxStartupPacket is the largest first packet that Postgres takes
// (MAX_STARTUP_PACKET_LENGTH), its length word included.
const MaxStartupPacket = 10000

// TLSHandshake is the first byte of a TLS record that opens a handshake. No packet
// of the protocol begins with it, because its length would be too large.
const TLSHandshake = 0x16

// errStartupLength says that a first packet has a length that Postgres refuses (it
// closes such connections without an answer).
var errStartupLength = errors.New("invalid length of startup packet")

// StartupLength checks the length word that begins a first packet and returns the
// packet's whole size in bytes.
func StartupLength(word []byte) (int, error) {
	n := binary.BigEndian.Uint32(word)
	if n < 8 || n > MaxStartupPacket {
		return 0, fmt.Errorf("%w: %d", errStartupLength, n)
	}
	return int(n), nil
}

// StartupCode returns the code or version of a whole first packet.
func StartupCode(packet []byte) uint32 { return binary.BigEndian.Uint32(packet[4:8]) }

// StartupParameter is one setting of a startup packet, in the packet's order.
type StartupParameter struct{ Name, Value string }

// StartupParameters returns the settings of a whole startup packet of protocol 3.
// Postgres takes packets whose list ends early or is followed by more, except that
// it refuses them afterwards; what can be read is returned in any case.
func StartupParameters(packet []byte) (list []StartupParameter, err error) {
	if len(packet) < 8 {
		return nil, errStartupLength
	}
	rest := packet[8:]
	for len(rest) > 0 && rest[0] != 0 {
		name, after, err := CString(rest)
		if err != nil {
			return list, err
		}
		value, after, err := CString(after)
		if err != nil {
			return list, err
		}
		list = append(list, StartupParameter{string(name), string(value)})
		rest = after
	}
	if len(rest) != 1 {
		return list, errors.New("startup packet is not ended by one zero byte")
	}
	return list, nil
}

// WithDatabase returns the startup packet that has these settings but asks for another database.
func WithDatabase(packet []byte, settings []StartupParameter, database string) []byte {
	var body []byte
	add := func(name, value string) { body = append(append(append(append(body, name...), 0), value...), 0) }
	for _, p := range settings {
		if p.Name != "database" {
			add(p.Name, p.Value)
		}
	}
	add("database", database)
	return AppendStartup(nil, StartupCode(packet), append(body, 0))
}

// CancelKey returns the process id and key, as they came, of a whole CancelRequest.
func CancelKey(packet []byte) (key []byte, err error) {
	if len(packet) < 16 || len(packet) > 12+256 {
		return nil, fmt.Errorf("cancel request of %d bytes", len(packet))
	}
	return packet[8:], nil
}

// AppendStartup appends a packet without type byte: one of the codes above or a
// startup packet.
func AppendStartup(dst []byte, code uint32, body []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(8+len(body)))
	dst = binary.BigEndian.AppendUint32(dst, code)
	return append(dst, body...)
}
