package proxy

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"

	"pgaccel/upstream"
	"pgaccel/wire"
)

// login is what a session does to the messages before its first ReadyForQuery. They
// are relayed; what is changed is what would keep clients out that Postgres would let
// in, or leave them without a reason.
type login struct {
	stage loginStage
	// unbindable says that the client's leg is in the clear and the server's is not.
	// The server offers SCRAM-SHA-256-PLUS then, which binds the exchange to its
	// certificate, and libpq breaks off when it finds that on a connection without TLS.
	// The offer is left out: without TLS a client has nothing to bind to.
	unbindable bool
	// hint returns what to add to an error of the server that ends the login, "" for
	// nothing. nil adds nothing.
	hint func(sqlstate string, asked bool) string
}

// loginStage is whose turn it is before the server has let the client in.
type loginStage uint8

const (
	loginServer loginStage = iota // the server is to answer
	loginAsked                    // the client is to answer
	loginDone
)

// waits says that the client's bytes wait for the server: what it says next decides
// what they are. No more is held of them meanwhile than one read brings.
func (l *login) waits() bool { return l.stage == loginServer }

// Codes of Authentication messages.
const (
	authenticationOk        = 0
	authenticationSASL      = 10
	authenticationSASLFinal = 12
)

// credentials takes the client's answer to an Authentication message. It is relayed as
// it comes, with nothing held: the server refuses one of more than 65,535 bytes, and a
// message of any other type.
func (s *session) credentials(typ byte) action {
	if typ != wire.Password {
		s.stopTracking()
		return relay
	}
	s.login.stage = loginServer
	return relay
}

// scramPlus is the mechanism with channel binding.
const scramPlus = "SCRAM-SHA-256-PLUS"

// beforeStart looks at what a server says up to its first ReadyForQuery, in a
// session that is not followed.
func (s *session) beforeStart(typ byte, message []byte, total int) action {
	switch typ {
	case wire.BackendKeyData:
		return s.backendKey(message, total)
	case wire.Authentication:
		return s.authentication(message, total)
	case wire.ErrorResponse:
		if total <= lookLimit && len(message) < total {
			return wait
		}
		s.clamped = false
		if total <= lookLimit { // it is FATAL: nothing else ends a login
			s.ends(endError(message[wire.HeaderLen:]))
		}
		if total <= lookLimit && s.explained(message[wire.HeaderLen:]) {
			return swallow
		}
	case wire.NegotiateProtocolVersion:
		s.clamped = false
	case wire.ReadyForQuery, wire.CopyBothResponse:
		s.started = true
	}
	return relay
}

// authentication notes whether the client had to prove who it is, and leaves out of
// the server's offer what cannot work.
func (s *session) authentication(message []byte, total int) action {
	const codeEnd = wire.HeaderLen + 4
	if total < codeEnd || total > lookLimit {
		return relay
	}
	if len(message) < codeEnd {
		return wait
	}
	switch code := binary.BigEndian.Uint32(message[wire.HeaderLen:]); code {
	case authenticationOk:
		s.unasked = !s.asked
		s.login.stage = loginDone
	case authenticationSASLFinal: // another message follows
	case authenticationSASL:
		if s.login.unbindable && len(message) < total {
			return wait
		}
		s.asked = true
		s.login.stage = loginAsked
		if !s.login.unbindable {
			return relay
		}
		if offer := withoutBinding(message[codeEnd:]); offer != nil {
			s.ahead = wire.AppendMessage(nil, wire.Authentication, append(binary.BigEndian.AppendUint32(nil, code), offer...))
			return swallow
		}
	default:
		s.asked = true
		s.login.stage = loginAsked
	}
	return relay
}

// withoutBinding returns a list of SASL mechanisms without SCRAM-SHA-256-PLUS, nil
// where it has nothing else or is not understood.
func withoutBinding(list []byte) []byte {
	var out []byte
	for {
		name, rest, err := wire.CString(list)
		if err != nil {
			return nil
		}
		if len(name) == 0 {
			if len(out) == 0 {
				return nil
			}
			return append(out, 0)
		}
		if string(name) != scramPlus {
			out = append(append(out, name...), 0)
		}
		list = rest
	}
}

// explained puts an error that ends the login out with a hint, if there is one.
func (s *session) explained(body []byte) bool {
	if s.login.hint == nil || len(body) == 0 || wire.ErrorField(body, 'H') != nil {
		return false
	}
	hint := s.login.hint(string(wire.ErrorField(body, 'C')), s.asked)
	if hint == "" {
		return false
	}
	fields := append(bytes.Clone(body[:len(body)-1]), 'H')
	s.ahead = wire.AppendMessage(nil, wire.ErrorResponse, append(append(fields, hint...), 0, 0))
	return true
}

// The remedies for logins that fail because of what the two legs of a session are.
const (
	hintOtherCertificate = "SCRAM binds the login to the server's certificate, and pgaccel shows clients another one: " +
		"give pgaccel the server's certificate and key (--tls-cert, --tls-key), or connect with channel_binding=disable."
	hintPlainLeg = "pgaccel's connection to the server is not encrypted, as the client's is not: where pg_hba.conf asks for TLS, " +
		"connect to pgaccel with TLS (--tls-cert, --tls-key), or have sslmode=require in --upstream."
	hintPlainLegOfTLS = "pgaccel's connection to the server is not encrypted: where pg_hba.conf asks for TLS, " +
		"the server needs ssl = on, and pgaccel its certificate and key (--tls-cert, --tls-key)."
	invalidAuthorization = "28000"
)

// loginOf says what the login of a client needs, given both legs of its session.
func (s *Server) loginOf(database *Database, client upstream.Client, server net.Conn) login {
	certificate := upstream.ServerCertificate(server)
	remedy, asked := "", false
	switch {
	case certificate != nil && !client.TLS:
		return login{unbindable: true}
	case certificate != nil && !bytes.Equal(certificate, client.Certificate):
		remedy, asked = hintOtherCertificate, true
	case certificate == nil && database.Upstream.OffersTLS() && client.TLS:
		remedy = hintPlainLegOfTLS
	case certificate == nil && database.Upstream.OffersTLS():
		remedy = hintPlainLeg
	default:
		return login{}
	}
	return login{hint: func(sqlstate string, was bool) string {
		if sqlstate != invalidAuthorization || was != asked {
			return ""
		}
		s.log.Warn("the server refuses a client", "hint", remedy)
		return remedy
	}}
}

// refused reports that a client gets no session because its connection is in the
// clear, and says so to it. serverTLS is whether the session's server leg has TLS; that
// decides where the configuration does not. As with Postgres' hostssl lines, Unix
// sockets are not asked for TLS.
func (s *Settings) refused(conn net.Conn, client upstream.Client, serverTLS bool, packet []byte) bool {
	address, tcp := conn.RemoteAddr().(*net.TCPAddr)
	required := s.TLS != nil && serverTLS
	if s.RequireTLS != nil {
		required = *s.RequireTLS
	}
	if !required || client.TLS || !tcp {
		return false
	}
	var user, database string
	list, _ := wire.StartupParameters(packet)
	for _, p := range list {
		switch p.Name {
		case "user":
			user = p.Value
		case "database":
			database = p.Value
		}
	}
	if database == "" {
		database = user
	}
	fatalError(conn, wire.ErrorFields{Severity: "FATAL", Code: invalidAuthorization,
		Message: fmt.Sprintf("pgaccel rejects connection for host \"%s\", user \"%s\", database \"%s\", no encryption", address.IP, user, database),
		Hint:    "pgaccel asks its clients for TLS (--tls-require): connect with sslmode=require."})
	return true
}
