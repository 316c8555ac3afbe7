package proxy

import (
	"encoding/binary"
	"errors"

	"pgaccel/engine"
	"pgaccel/plan"
	"pgaccel/vector"
	"pgaccel/wire"
)

// An EXPLAIN is a local execution like that of the SELECT that it explains, but for three things. As for a COPY,
// the server is asked to describe that SELECT, in the savepoint of the gate. The rows are one column, which is
// known. And where it is forwarded the client is told why, in front of the first row of the server's plan: where the
// server has an error instead, that is all there is to say.

// explainTag is CommandComplete's.
const explainTag = "EXPLAIN"

// computeExplain is compute for an EXPLAIN.
func (s *session) computeExplain(g *gateRun, params []vector.Datum, head []byte) {
	if s.local.explain.SQL != "" && (g.unfit || g.head == nil) {
		s.forward(plan.ReasonDescription)
		return
	}
	s.compute(g, g.fields, params, head)
}

// explainHead appends the RowDescription of an EXPLAIN.
func explainHead(dst []byte, oid uint32) []byte {
	start := len(dst)
	dst = binary.BigEndian.AppendUint16(open(dst, wire.RowDescription), 1)
	dst = appendCString(dst, engine.ExplainColumn)
	dst = append(dst, 0, 0, 0, 0, 0, 0) // no column of a table
	dst = binary.BigEndian.AppendUint32(dst, oid)
	return seal(append(dst, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0), start) // of any length, no modifier, text
}

// notify keeps what the client is to be told of an EXPLAIN that is forwarded.
func (s *session) notify(err error) {
	var n *engine.Notice
	if !errors.As(err, &n) || s.settings.ClientEncoding != "UTF8" && !wire.IsASCII(n.Message+n.Detail+n.Hint) {
		return
	}
	s.notice = wire.AppendNotice(nil, wire.ErrorFields{Severity: "INFO", Code: "00000", Message: n.Message, Detail: n.Detail, Hint: n.Hint, Position: n.Position})
}

// noticed takes note of a message of the server's behind an EXPLAIN that is forwarded: the notice goes out in front
// of the first of its rows, and is of no use behind them.
func (s *session) noticed(typ byte) {
	switch typ {
	case wire.RowDescription, wire.DataRow:
		s.ahead = append(s.ahead, s.notice...)
	case wire.ErrorResponse, wire.CommandComplete, wire.ReadyForQuery:
	default:
		return
	}
	s.notice = nil
}
