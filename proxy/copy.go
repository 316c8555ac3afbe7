package proxy

import (
	"bytes"
	"slices"
	"time"

	"pgaccel/engine"
	"pgaccel/plan"
	"pgaccel/wire"
)

// A COPY ... TO STDOUT is a local execution like that of the SELECT of its rows, but for three things. The
// server does not describe a COPY, so that it is asked to describe that SELECT: in the savepoint of the
// gate, or where nothing else is undone, because its errors are not the COPY's, which is forwarded then. The
// rows go out as COPY writes them. And a portal of it runs once.

// description is what the server says of a result.
type description struct {
	fields     []engine.Field
	head       []byte         // RowDescription for the client; nil until it is described
	rows       []engine.Field // of the rest of a statement that writes rows
	parameters bool           // it may have parameters
	unfit      bool           // it cannot be dealt with
	owed       int            // descriptions to come of what is not the statement itself
}

func (g *gateRun) described(_ *session, typ byte, message []byte) {
	body := message[wire.HeaderLen:]
	switch typ {
	case wire.ParameterDescription:
		if g.head == nil && !g.parameters && (len(body) != 2 || body[0] != 0 || body[1] != 0) {
			g.unfit = true
		}
	case wire.NoData:
		g.owed--
		g.unfit = true
	case wire.RowDescription:
		g.owed--
		fields, ok := readFields(body)
		g.unfit = g.unfit || !ok
		if g.head != nil {
			g.rows = fields
			break
		}
		g.fields, g.head = fields, append([]byte(nil), message...)
	}
}

// describeText asks the server to describe the result of a text, with parameters of these types.
func (s *session) describeText(b []byte, sql string, types []uint32) []byte {
	b = appendNamed(b, wire.Close, 'S', queryName)
	b = appendParse(b, queryName, sql, types)
	b = appendNamed(b, wire.Describe, 'S', queryName)
	b = appendNamed(b, wire.Close, 'S', queryName)
	for _, k := range []reply{replyClose, replyParse, replyStatement, replyClose} {
		s.own(k)
	}
	return b
}

// describeSubstitutes asks for the descriptions of what stands for a statement that has none: the SELECT of a COPY's rows, or
// that of an EXPLAIN; those of what is written, and of the rest that writes them.
func (s *session) describeSubstitutes(b []byte, g *gateRun) []byte {
	if c := s.local.copy; c != nil {
		g.owed = 1
		return s.describeText(b, c.SQL, nil)
	}
	if x := s.local.explain; x != nil && x.SQL != "" {
		g.owed = 1
		g.parameters = s.local.portal != nil
		return s.describeText(b, x.SQL, s.local.paramTypes())
	}
	if s.local.writes() {
		f, types := s.local.decision.Finish(), s.local.paramTypes()
		if len(types) != f.Params {
			g.unfit = true // they are asked for in the same batch, for the next execution
			return b
		}
		g.owed, g.parameters = 2, s.local.portal != nil
		return s.describeText(s.describeText(b, f.Select, types), f.Rows, slices.Concat(types, f.Arrays()))
	}
	return b
}

// paramTypes are those of the parameters, nil where they are not known.
func (x *localExecution) paramTypes() []uint32 {
	if x.portal == nil || !x.portal.s.haveParams {
		return nil
	}
	return x.portal.s.params
}

// writes reports whether the statement writes the rows of a SELECT, which its rest does.
func (x *localExecution) writes() bool {
	f := x.decision.Finish()
	return f != nil && f.Select != ""
}

// writable reports whether what the rest writes has the columns of what the statement writes.
func (g *gateRun) writable() bool {
	return !g.unfit && g.head != nil && slices.EqualFunc(g.fields, g.rows, func(a, b engine.Field) bool { return a.TypeOID == b.TypeOID && a.Typmod == b.Typmod })
}

// describesItself reports whether the server describes the statement.
func (x *localExecution) describesItself() bool {
	return x.copy == nil && x.explain == nil && !x.writes()
}

// undescribed reports that an error in answer to a message of kind k is the server's for one of describeSubstitutes,
// which can be borne.
func (g *gateRun) undescribed(k reply, code string) bool {
	if g.owed == 0 || !g.bearable() || k&replyOwn == 0 {
		return false
	}
	switch k & replyKind {
	case replyParse, replyStatement:
		return code != queryCanceled && code != lockNotAvailable && code != deadlockDetected
	}
	return false
}

// computeCopy is compute for a COPY. head is for the client, before the rows.
func (s *session) computeCopy(g *gateRun, head []byte) {
	w, names := copyWriter(s.local.copy, g.fields, s.settings.ClientEncoding)
	if g.unfit || g.head == nil || w == nil {
		s.forward(plan.ReasonDescription)
		return
	}
	s.local.writer = w
	s.compute(g, g.fields, nil, w.AppendBegin(head, names))
}

// copyWriter returns what writes the rows, and the names of the columns; nil where the server may have an
// error for the options.
func copyWriter(of *engine.Copy, fields []engine.Field, encoding string) (*wire.CopyWriter, []string) {
	c := of.Options
	w := &wire.CopyWriter{CSV: c.CSV, Binary: c.Binary, Header: c.Header, Delimiter: c.Delimiter, Quote: c.Quote, Escape: c.Escape, Null: c.Null}
	var names []string
	for _, f := range fields {
		names, w.ForceQuote = append(names, f.Name), append(w.ForceQuote, c.ForceQuoteAll)
		if encoding != "UTF8" && !wire.IsASCII(f.Name) {
			return nil, nil
		}
	}
	for _, name := range c.ForceQuote {
		i := slices.Index(names, name) // of several of a name it is the first
		if i < 0 {
			return nil, nil
		}
		w.ForceQuote[i] = true
	}
	return w, names
}

// beginAgain answers an Execute of a portal whose COPY was answered here: the server has not run it, and
// would.
func (s *session) beginAgain(p *portal, message []byte, dst *[]byte) {
	s.local = &localExecution{portal: p, original: bytes.Clone(message), started: time.Now()}
	*dst = s.cancelBatch(*dst, wire.AppendError(nil, wire.ErrorFields{Severity: "ERROR", Code: "55000",
		Message: "portal \"" + p.name + "\" cannot be run", File: "portalmem.c", Routine: "MarkPortalActive"}))
}
