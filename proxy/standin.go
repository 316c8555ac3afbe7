package proxy

import (
	"bytes"

	"pgaccel/wire"
)

// The rows of a portal that is answered here are not the server's: they are of another
// snapshot than the one that the portal took at Bind, and where no ORDER BY says otherwise in
// another order. SQL reaches a portal by its name, too: by FETCH, MOVE and WHERE CURRENT OF,
// and by any function, which no text of a statement tells (cursor_to_xml, a refcursor of
// PL/pgSQL's, an empty one for the unnamed portal). There the server's portal would begin anew, and
// it cannot be brought to the row where the client is. So, before the client gets the first
// row, its place in the server is taken by a stand-in of the same name, which fails however it
// is run. The client is told why (0A000), and the session's named portals are left to
// the server from then on: an application that repeats its transaction gets what it asks for.
//
// In everything else the stand-in is the portal: CLOSE ends it, the name is taken, it goes with
// its transaction or savepoint. For that, nothing may have been run between Bind and the first
// Execute; where something was, the Execute is forwarded, the more so as that may have moved the
// portal. A Describe is answered with what the server has said of the portal itself. Before
// the portal is read on, the server is asked whether the stand-in is still there (beginResume),
// and where the name is another portal's, the server runs that.
//
// It costs a named portal one round trip, at its first Execute. No text names the unnamed one, and
// functions find it only while another portal is executed or by FunctionCall. The former puts a
// stand-in into its place first; the latter, behind which no Sync would end an error of that,
// just closes it.

// standInSQL is what the stand-in runs. An EXPLAIN is run as a whole before FETCH and MOVE do
// anything, also by no row. There is no such prepared statement: its name is what errors
// show, those of the server's log as well.
const (
	standInSQL    = `EXPLAIN EXECUTE "` + standInPlan + `"`
	standInPlan   = "portal answered by pgaccel"
	standInName   = "pgaccel_portal"
	standInColumn = "\x00\x01QUERY PLAN\x00"
)

// standIn puts the stand-in into the place of a portal.
func (s *session) standIn(b []byte, p *portal) []byte {
	b = appendNamed(b, wire.Describe, 'P', p.name)
	s.queue.pushRef(replyPortal|replyOwn, ref{standIn: p})
	b = appendNamed(b, wire.Close, 'P', p.name)
	s.own(replyClose)
	return appendEmpty(s.bindStandIn(b, p), wire.Flush)
}

// bindStandIn makes the stand-in, where the name is free.
func (s *session) bindStandIn(b []byte, p *portal) []byte {
	b = appendNamed(b, wire.Close, 'S', standInName) // where the last attempt failed
	b = appendParse(b, standInName, standInSQL, nil)
	start := len(b)
	b = appendCString(appendCString(open(b, wire.Bind), p.name), standInName)
	b = seal(append(b, 0, 0, 0, 0, 0, 1, 0, byte(wire.FormatBinary)), start)
	b = appendNamed(b, wire.Close, 'S', standInName)
	for _, k := range []reply{replyClose, replyParse, replyBind, replyClose} {
		s.own(k)
	}
	return b
}

// isStandIn reports whether a RowDescription's body is the stand-in's: results in binary
// format are what no portal of SQL's has.
func isStandIn(body []byte) bool {
	return bytes.HasPrefix(body, []byte(standInColumn)) && body[len(body)-1] == byte(wire.FormatBinary)
}

// functionsFind returns the unnamed portal if it is answered here and functions that run now
// would find it.
func (s *session) functionsFind() *portal {
	if p := s.known.portals[""]; p != nil && p.answer != nil && p.head == nil {
		return p
	}
	return nil
}

// beginStandIn puts a stand-in into the place of the unnamed portal before an Execute of
// another one.
func (s *session) beginStandIn(p *portal, message []byte, dst *[]byte) {
	s.step = &step{standsIn: p, original: bytes.Clone(message), settling: s.queue.len() > 0}
	if s.step.settling {
		*dst = appendEmpty(*dst, wire.Flush)
		return
	}
	*dst = s.standIn(*dst, p)
}

// standInRun reports whether an error says that SQL has run a stand-in.
func (s *session) standInRun(body []byte) bool {
	text := wire.ErrorField(body, 'M')
	switch string(wire.ErrorField(body, 'R')) {
	case "FetchPreparedStatement":
		return bytes.Contains(text, []byte(standInPlan))
	case "execCurrentOf", "MarkPortalActive": // not a SELECT; has failed before
		for name, p := range s.known.portals {
			if p.head != nil && bytes.Contains(text, []byte(`"`+name+`"`)) {
				return true
			}
		}
	}
	return false
}

// standInError is what the client is told then.
var standInError = wire.ErrorFields{Severity: "ERROR", Code: "0A000",
	Message: "SQL cannot use a portal that pgaccel answers",
	Detail:  "FETCH, MOVE, WHERE CURRENT OF and functions would find it at another row than Execute.",
	Hint:    "Run the transaction again: from now on pgaccel leaves the named portals of this session to the server."}
