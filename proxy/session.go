package proxy

import (
	"pgaccel/engine"
	"pgaccel/wire"
)

// session is one conversation between a client and its server, without any I/O: a
// driver feeds it the bytes of either side in pieces of any size and writes what it
// puts out. It is not safe for concurrent use.
type session struct {
	engine  engine.Decider // nil relays everything
	opaque  bool           // no look at any byte once the session has begun
	clamped bool           // a newer protocol was asked for than is known here

	toClient, toServer out
	key                []byte // BackendKeyData's process id and key, once it came
	started            bool   // the first ReadyForQuery or CopyBoth passed
	rest               struct {
		client, server int // bytes to come of a message that is relayed in pieces
	}
}

func newSession(d engine.Decider) *session { return &session{engine: d} }

// startup looks at the settings of the startup packet.
func (s *session) startup(list []wire.StartupParameter) {
	for _, p := range list {
		if p.Name == "replication" && isReplication(p.Value) {
			s.opaque = true
		}
	}
}

// out is what a call of the machine wants written to one side, in order. The parts
// refer to the bytes given in or to memory that nobody changes; they are valid until
// the next call.
type out struct{ parts [][]byte }

func (o *out) add(b []byte) {
	if len(b) == 0 {
		return
	}
	if n := len(o.parts); n > 0 {
		// A run of relayed messages stays one part.
		if last := o.parts[n-1]; cap(last) > len(last) && &last[:len(last)+1][len(last)] == &b[0] {
			o.parts[n-1] = last[:len(last)+len(b)]
			return
		}
	}
	o.parts = append(o.parts, b)
}

// client takes bytes from the client and returns how many it has done with. The
// others are to be given again, with more behind them or after another event.
func (s *session) client(b []byte) int {
	s.toServer.add(b)
	return len(b)
}

// server takes bytes from the server, likewise.
func (s *session) server(b []byte) int {
	if s.started && s.opaque {
		s.toClient.add(b)
		return len(b)
	}
	at := 0
	for at < len(b) {
		if s.rest.server > 0 {
			n := min(s.rest.server, len(b)-at)
			s.toClient.add(b[at : at+n])
			at, s.rest.server = at+n, s.rest.server-n
			continue
		}
		if s.started && s.opaque {
			s.toClient.add(b[at:])
			return len(b)
		}
		if len(b)-at < wire.HeaderLen {
			break
		}
		typ, total, ok := wire.Header(b[at:])
		if !ok {
			s.started, s.opaque = true, true
			continue
		}
		switch typ {
		case wire.BackendKeyData:
			if len(b)-at < total && total < 1<<10 {
				return at
			}
			if len(b)-at >= total {
				s.key = append([]byte(nil), b[at+wire.HeaderLen:at+total]...)
			}
		case wire.ReadyForQuery:
			s.started = true
		case wire.Authentication:
			if s.clamped {
				s.clamped = false
				s.toClient.add([]byte{wire.NegotiateProtocolVersion, 0, 0, 0, 12, 0, 3, 0, 2, 0, 0, 0, 0})
			}
		case wire.NegotiateProtocolVersion, wire.ErrorResponse:
			s.clamped = false
		}
		s.rest.server = total
	}
	return at
}

// blocked reports that client bytes wait for an event of another side.
func (s *session) blocked() bool { return false }
