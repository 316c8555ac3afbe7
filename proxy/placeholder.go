package proxy

import (
	"bytes"

	"pgaccel/wire"
)

// The rows of a portal that is answered here are not the server's: they are of another snapshot
// than the one that the portal took at Bind, and where no ORDER BY says otherwise in another
// order. SQL reaches a portal by its name, too: by FETCH, MOVE and WHERE CURRENT OF, and by any
// function, which no text of a statement tells (cursor_to_xml, a refcursor of PL/pgSQL's, an
// empty one for the unnamed portal). There the server's portal would begin anew, and it cannot
// be brought to the row where the client is. So, before the client gets the first row, its place
// in the server is taken by a placeholder of the same name, which fails however it is run. The
// client is told why (0A000), and the session's named portals are left to the server from then
// on: an application that repeats its transaction gets what it asks for.
//
// In everything else the placeholder is the portal: CLOSE ends it, the name is taken, it goes
// with its transaction or savepoint. For that, nothing may have been run between Bind and the
// first Execute; where something was, the Execute is forwarded, the more so as that may have
// moved the portal. A Describe is answered with what the server has said of the portal itself.
// Before the portal is read on, the server is asked whether the placeholder is still there
// (beginReopen), and where the name is another portal's, the server runs that.
//
// It costs a named portal one round trip, at its first Execute. No text names the unnamed one,
// and functions find it only while another portal is executed or by FunctionCall. The former
// puts a placeholder into its place first; the latter, behind which no Sync would end an error
// of that, just closes it.

// placeholderSQL is what the placeholder runs. An EXPLAIN is run as a whole before FETCH and
// MOVE do anything, also by no row. There is no such prepared statement: its name is what errors
// show, those of the server's log as well.
const (
	placeholderSQL    = `EXPLAIN EXECUTE "` + placeholderPlan + `"`
	placeholderPlan   = "portal answered by pgaccel"
	placeholderName   = "pgaccel_portal"
	placeholderColumn = "\x00\x01QUERY PLAN\x00"
)

// replacing is the stage of an Execute while the server puts the placeholder into the place of a
// portal.
type replacing struct {
	passive
	portal *portal
	answer *answer // the portal's, to be sent then; nil: another one is executed
}

// replacePortal puts the placeholder into the place of p. a is what is sent then, nil where
// another portal is executed.
func (s *session) replacePortal(b []byte, p *portal, a *answer) []byte {
	s.local.stage = &replacing{portal: p, answer: a}
	b = appendNamed(b, wire.Describe, 'P', p.name)
	s.queue.pushRef(replyPortal|replyOwn, ref{placeholder: p})
	b = appendNamed(b, wire.Close, 'P', p.name)
	s.own(replyClose)
	return appendEmpty(s.bindPlaceholder(b, p), wire.Flush)
}

func (p *replacing) answered(s *session) {
	if p.answer == nil {
		s.forward("")
		return
	}
	s.send(nil)
}

func (p *replacing) failed(s *session, k reply, body []byte) action {
	if k&replyOwn != 0 {
		s.cache.forgetPortal(p.portal.name)
	}
	return s.executeFailed(k, body)
}

// bindPlaceholder makes the placeholder, where the name is free.
func (s *session) bindPlaceholder(b []byte, p *portal) []byte {
	b = appendNamed(b, wire.Close, 'S', placeholderName) // where the last attempt failed
	b = appendParse(b, placeholderName, placeholderSQL, nil)
	start := len(b)
	b = appendCString(appendCString(open(b, wire.Bind), p.name), placeholderName)
	b = seal(append(b, 0, 0, 0, 0, 0, 1, 0, byte(wire.FormatBinary)), start)
	b = appendNamed(b, wire.Close, 'S', placeholderName)
	for _, k := range []reply{replyClose, replyParse, replyBind, replyClose} {
		s.own(k)
	}
	return b
}

// isPlaceholder reports whether a RowDescription's body is the placeholder's: results in binary
// format are what no portal of SQL's has.
func isPlaceholder(body []byte) bool {
	return bytes.HasPrefix(body, []byte(placeholderColumn)) && body[len(body)-1] == byte(wire.FormatBinary)
}

// functionsFind returns the unnamed portal if it is answered here and functions that run now
// would find it.
func (s *session) functionsFind() *portal {
	if p := s.cache.portals[""]; p != nil && p.answer != nil && p.head == nil {
		return p
	}
	return nil
}

// beginPlaceholder puts a placeholder into the place of the unnamed portal before an Execute of
// another one.
func (s *session) beginPlaceholder(p *portal, message []byte, dst *[]byte) {
	s.local = &localExecution{original: bytes.Clone(message)}
	if s.queue.len() > 0 {
		s.local.stage = &settling{replace: p}
		*dst = appendEmpty(*dst, wire.Flush)
		return
	}
	*dst = s.replacePortal(*dst, p, nil)
}

// placeholderRun reports whether an error says that SQL has run a placeholder.
func (s *session) placeholderRun(body []byte) bool {
	text := wire.ErrorField(body, 'M')
	switch string(wire.ErrorField(body, 'R')) {
	case "FetchPreparedStatement":
		return bytes.Contains(text, []byte(placeholderPlan))
	case "execCurrentOf", "MarkPortalActive": // not a SELECT; has failed before
		for name, p := range s.cache.portals {
			if p.head != nil && bytes.Contains(text, []byte(`"`+name+`"`)) {
				return true
			}
		}
	}
	return false
}

// placeholderError is what the client is told then.
var placeholderError = wire.ErrorFields{Severity: "ERROR", Code: "0A000",
	Message: "SQL cannot use a portal that pgaccel answers",
	Detail:  "FETCH, MOVE, WHERE CURRENT OF and functions would find it at another row than Execute.",
	Hint:    "Run the transaction again: from now on pgaccel leaves the named portals of this session to the server."}
