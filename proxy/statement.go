package proxy

import (
	"encoding/binary"

	"pgaccel/engine"
	"pgaccel/sqltype"
	"pgaccel/vector"
	"pgaccel/wire"
)

// statement is a prepared statement that an engine may answer. Statements that
// cannot are not kept: one that is not known is relayed.
type statement struct {
	name  string
	st    engine.Statement
	ascii bool   // so is its text
	after uint64 // replies.sent at its Parse
	// settings are the session's at its Parse, by which the server read its literals; known says
	// that nothing was on its way that may have changed them.
	settings wire.TextSettings
	known    bool

	// What Postgres said of it, once a Describe was answered. A statement whose
	// result type changes fails at Bind, so that this stays true.
	params      []uint32
	fields      []engine.Field
	haveParams  bool
	haveFields  bool
	sentForType bool // a Describe S is on its way
	sentForRow  bool // a Describe of either kind is

	// dead says that the server may hold another statement under the name, or none.
	dead bool
}

// portal is what Bind made of a statement.
type portal struct {
	name    string
	s       *statement
	batch   uint64 // the Syncs and Queries sent before it
	after   uint64 // replies.sent at its Bind
	bound   bool   // the server has said so
	values  [][]byte
	formats []int16 // of values: none, one for all, or one each
	results []int16 // of columns, likewise
	message []byte  // the Bind
	order   uint64  // replies.bound at it

	dead      bool // as for statements; never set once an answer has begun
	forwarded bool // executed by the server
	unread    bool // its values were not looked at: the statement was not to be answered here
	copied    bool // a COPY, or what writes rows, that was answered here

	// A portal that was executed here keeps the rows that are left, because the
	// server's own stays at its start.
	answer *answer
	serial uint64 // session.commands when the server was last known to have it
	head   []byte // RowDescription, once a placeholder has taken its place in the server
}

// portalNameMax is the length to which Postgres cuts the names of portals: longer ones may be
// those of one portal, which is left to it.
const portalNameMax = 63

// needsTypes says that the values cannot be read yet and nobody has asked for their
// types.
func (p *portal) needsTypes() bool {
	return len(p.values) > 0 && !p.s.haveParams && !p.s.sentForType
}

// parseBody splits a Parse message's body.
func parseBody(b []byte) (name, sql []byte, oids []uint32, ok bool) {
	name, b, err := wire.CString(b)
	if err != nil {
		return nil, nil, nil, false
	}
	sql, b, err = wire.CString(b)
	if err != nil || len(b) < 2 {
		return nil, nil, nil, false
	}
	n := int(binary.BigEndian.Uint16(b))
	if b = b[2:]; len(b) != 4*n {
		return nil, nil, nil, false
	}
	for ; len(b) > 0; b = b[4:] {
		oids = append(oids, binary.BigEndian.Uint32(b))
	}
	return name, sql, oids, true
}

// bindNames returns the portal and statement that a Bind message names.
func bindNames(b []byte) (portal, statement, rest []byte, ok bool) {
	portal, b, err := wire.CString(b)
	if err != nil {
		return nil, nil, nil, false
	}
	statement, rest, err = wire.CString(b)
	return portal, statement, rest, err == nil
}

// bindValues reads the rest of a Bind message into p, which refers to it.
func bindValues(p *portal, b []byte) bool {
	shorts := func() (list []int16, ok bool) {
		if len(b) < 2 {
			return nil, false
		}
		n := int(binary.BigEndian.Uint16(b))
		if b = b[2:]; len(b) < 2*n {
			return nil, false
		}
		for ; n > 0; n-- {
			list = append(list, int16(binary.BigEndian.Uint16(b)))
			b = b[2:]
		}
		return list, true
	}
	var ok bool
	if p.formats, ok = shorts(); !ok || len(b) < 2 {
		return false
	}
	n := int(binary.BigEndian.Uint16(b))
	b = b[2:]
	for ; n > 0; n-- {
		if len(b) < 4 {
			return false
		}
		size := int32(binary.BigEndian.Uint32(b))
		b = b[4:]
		if size == -1 {
			p.values = append(p.values, nil)
			continue
		}
		if size < 0 || int(size) > len(b) {
			return false
		}
		p.values = append(p.values, b[:size:size])
		b = b[size:]
	}
	p.results, ok = shorts()
	return ok && len(b) == 0 && (len(p.formats) <= 1 || len(p.formats) == len(p.values))
}

// format returns the format of a value.
func (p *portal) format(i int) int16 {
	switch len(p.formats) {
	case 0:
		return wire.FormatText
	case 1:
		return p.formats[0]
	}
	return p.formats[i]
}

// decode returns the values in the given types, but for those that are unread, which is nil for none.
// ascii restricts text to what every encoding agrees on.
func (p *portal) decode(oids []uint32, unread []bool, ascii bool) ([]vector.Datum, bool) {
	if len(p.values) != len(oids) {
		return nil, false
	}
	list := make([]vector.Datum, len(p.values))
	for i, raw := range p.values {
		if i < len(unread) && unread[i] {
			continue
		}
		oid := oids[i]
		kind := sqltype.KindOf(oid)
		if ascii && (kind.IsString() || kind == vector.Invalid) && !wire.IsASCII(raw) {
			return nil, false
		}
		d, err := wire.DecodeParam(oid, p.format(i), raw)
		if err != nil {
			return nil, false
		}
		list[i] = d
	}
	return list, true
}

// readParams reads a ParameterDescription's body.
func (s *statement) readParams(b []byte) {
	if len(b) < 2 || len(b)-2 != 4*int(binary.BigEndian.Uint16(b)) {
		return
	}
	s.params = s.params[:0]
	for b = b[2:]; len(b) > 0; b = b[4:] {
		s.params = append(s.params, binary.BigEndian.Uint32(b))
	}
	s.haveParams = true
}

// readFields reads a RowDescription's body.
func readFields(b []byte) (list []engine.Field, ok bool) {
	if len(b) < 2 {
		return nil, false
	}
	n := int(binary.BigEndian.Uint16(b))
	b = b[2:]
	for ; n > 0; n-- {
		name, rest, err := wire.CString(b)
		if err != nil || len(rest) < 18 {
			return nil, false
		}
		list = append(list, engine.Field{Name: string(name), TypeOID: binary.BigEndian.Uint32(rest[6:]),
			Typmod: int32(binary.BigEndian.Uint32(rest[12:]))})
		b = rest[18:]
	}
	return list, len(b) == 0
}
