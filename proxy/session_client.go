package proxy

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"unicode/utf8"

	"pgaccel/engine"
	"pgaccel/plan"
	"pgaccel/wire"
)

// fromClient decides on a message of the client. message holds what has come of
// total bytes, at least the header. Messages to be sent before it, which the answer
// relay lets follow, are put into before.
func (s *session) fromClient(typ byte, message []byte, total int, before *[]byte) action {
	if typ == wire.Terminate {
		s.ends(endTerminate)
	}
	if s.login.waits() && !s.started {
		return wait
	}
	if s.login.stage == loginAsked && !s.started {
		return s.credentials(typ)
	}
	if s.skipping && typ != wire.Sync && typ != wire.Terminate {
		return relay // the server ignores it
	}
	whole := len(message) == total
	look := s.looks(total, whole)
	if s.answered {
		if !whole {
			return wait
		}
		s.answered = false
		return swallow
	}
	if s.slow.enabled() && !s.copyIn && !s.observe(typ, message, total, look) {
		return wait
	}
	if len(s.cache.cursors) > 0 {
		if do, done := s.beforeCursors(typ, message, look, whole, before); done {
			return do
		}
	}
	if s.copyIn {
		switch typ {
		case wire.CopyData, wire.Flush:
			return relay
		case wire.Sync:
			s.copySync = true
			return relay
		case wire.CopyDone, wire.CopyFail:
			s.copyIn = false
			return relay
		case wire.Terminate:
			return relay
		default:
			s.stopTracking()
			return relay
		}
	}
	switch typ {
	case wire.Parse, wire.Bind, wire.Describe, wire.Close:
		if s.unsettledViews() {
			return wait
		}
	}
	switch typ {
	case wire.Query:
		if !look {
			return s.relayQuery()
		}
		if !whole || s.plansAside(queryText(message), nil) {
			return wait
		}
		do := s.query(message, before)
		if s.implicit.open() && s.local == nil {
			if do == relay {
				*before = append(*before, message...)
			}
			*before = s.commitImplicit(*before)
			return swallow
		}
		return do
	case wire.Parse:
		if look && !whole {
			return wait
		}
		if !look {
			if !s.largeParse(message) {
				return wait
			}
			s.inBatch = true
			s.cache.invalidateStatements()
			s.watch.forgetNames()
			return relay
		}
		if _, sql, oids, ok := parseBody(message[wire.HeaderLen:]); ok && s.plansAside(sql, oids) {
			return wait
		}
		do := s.parse(message, before)
		s.inBatch = s.inBatch || do != wait
		return do
	case wire.Bind:
		s.watch.bind(message)
		if len(s.cache.statements) > 0 || len(s.cache.portals) > 0 || len(s.views) > 0 {
			if look && !whole {
				return wait
			}
			if !look {
				s.inBatch = true
				s.cache.invalidatePortals()
				s.portalOverwritten()
				s.queue.push(replyBind)
				return relay
			}
			do := s.bind(message, before)
			s.inBatch = s.inBatch || do != wait
			return do
		}
		s.queue.push(replyBind)
	case wire.Execute:
		if len(s.cache.portals) > 0 {
			if look && !whole {
				return wait
			}
			if look {
				return s.execute(message, before)
			}
		}
		s.queue.push(replyExecute)
	case wire.Describe:
		if !look {
			s.stopTracking()
			return relay
		}
		if !whole {
			return wait
		}
		s.describe(message)
	case wire.Close:
		if look && !whole {
			return wait
		}
		var change *viewChange
		if len(message) > wire.HeaderLen {
			if name, _, err := wire.CString(message[wire.HeaderLen+1:]); err == nil {
				if message[wire.HeaderLen] == 'S' {
					s.watch.parse(name, nil)
					s.cache.forgetStatement(string(name))
					change = s.setView(string(name), nil)
				} else {
					s.cache.forgetPortal(string(name))
				}
			}
		}
		s.pushView(replyClose, change)
	case wire.Sync:
		s.inBatch, s.skipping = false, false
		s.implicit.uncancelled()
		s.beginBatch()
		if s.implicit.open() {
			s.queue.push(replySync | replyHeld)
			s.sent++
			*before = s.commitImplicit(appendEmpty(*before, wire.Sync))
			return swallow
		}
		s.queue.push(replySync)
		s.sent++
		return relay
	case wire.FunctionCall:
		s.commands++
		s.cache.invalidatePortals()
		if s.functionsFind() != nil {
			s.cache.forgetPortal("")
			*before = appendNamed(*before, wire.Close, 'P', "")
			s.own(replyClose)
		}
		s.queue.push(replyFunction)
		s.sent++
		return relay
	case wire.CopyDone, wire.CopyFail:
		if s.queue.len() > 0 {
			s.queue.push(replyCopyEnd)
		}
		return relay
	case wire.Flush, wire.CopyData, wire.Password, wire.Terminate:
		return relay
	default:
		s.stopTracking() // the server will close the connection
		return relay
	}
	s.inBatch = true
	return relay
}

// portalOverwritten stops tracking a session in which a portal that has begun to
// answer here may have been replaced by a message too large to look at.
func (s *session) portalOverwritten() {
	if len(s.cache.portals) > 0 {
		s.stopTracking()
	}
}

// beginBatch notes where a batch of extended messages begins.
func (s *session) beginBatch() { s.batch = batch{sent: s.queue.sent, bound: s.queue.bound} }

// relayQuery lets a simple Query pass.
func (s *session) relayQuery() action {
	s.implicit.uncancelled()
	change := s.setView("", nil) // unless the server ignores the Query
	s.cache.forgetStatement("")
	s.cache.forgetPortal("")
	k := replyQuery
	if s.implicit.open() {
		k |= replyHeld
	}
	s.pushView(k, change)
	if s.sent++; s.inBatch {
		s.batchedQuery = s.sent
	}
	s.beginBatch()
	return relay
}

// forwardQuery lets a Query pass that was decided on, and counts it.
func (s *session) forwardQuery(d engine.Decision, r plan.Reason) action {
	sent := s.forwardedBy(d, r)
	do := s.relayQuery()
	s.queue.timed(d, sent)
	return do
}

// queryText returns a Query's text, nil where the body is none.
func queryText(message []byte) []byte {
	text, rest, err := wire.CString(message[wire.HeaderLen:])
	if err != nil || len(rest) != 0 {
		return nil
	}
	return text
}

// mentioned looks at a text that names something of pgaccel's.
func (s *session) mentioned(text []byte, before *[]byte) {
	if !s.modeNamed && containsFold(text, modeSetting) {
		s.modeNamed = true
	}
	if s.gatePrepared != [engine.GateForms]bool{} && containsFold(text, "pg_prepared_statements") {
		// Nobody should find what they did not prepare.
		for _, name := range append(gateNames[:], cancelName, constantsName) {
			*before = appendNamed(*before, wire.Close, 'S', name)
			s.queue.push(replyClose | replyOwn)
		}
		clear(s.gatePrepared[:])
	}
}

// query decides on a simple Query.
func (s *session) query(message []byte, before *[]byte) action {
	text := queryText(message)
	if text == nil || !s.engine.Mentions(text) {
		s.watch.query(text)
		return s.relayQuery()
	}
	s.watch.forget()
	s.mentioned(text, before)
	if instead, shows := s.settingsIn(text); instead != "" {
		return s.settingsQuery(instead, shows, before)
	}
	sql := string(text)
	began := s.arrival()
	d := s.prepare(sql, nil).Decide(s.executes(true))
	s.record(spanDecide, began)
	if !d.Listed() {
		s.watch.query(text)
	}
	route := d.Route()
	quiet := s.queue.len() == 0 && !s.inBatch && (s.status == 'I' || s.status == 'T')
	switch {
	case s.status == 'E':
		return s.relayQuery()
	case route == engine.RouteView:
		if d.View().Parameter > 1 {
			return s.relayQuery() // there is no parameter $1
		}
		s.cache.forgetStatement("")
		s.cache.forgetPortal("")
		*before = s.ask(d.View(), "", nil, *before)
		return swallow
	case route == engine.RouteForward:
		return s.forwardQuery(d, "")
	case !quiet || hasParameter(text):
		return s.forwardQuery(d, plan.ReasonNotSelect)
	case !s.encodingKnown(text):
		return s.forwardQuery(d, plan.ReasonSettings)
	case s.gateBarred(nil) != "" && route != engine.RouteSplit && route != engine.RouteCursor:
		return s.forwardQuery(d, s.gateBarred(nil))
	case route == engine.RouteCursor:
		return s.declareCursor(d, before)
	}
	if route == engine.RouteSplit {
		// Only behind a BEGIN do the statements of one Query keep their common fate when they are
		// sent as two. Spaces stand for the characters of the prefix, so that the position in an
		// error is the one in the client's text.
		split := d.Split()
		if s.status == 'I' && !split.Begins {
			return s.forwardQuery(d, plan.ReasonNotSelect)
		}
		padded := strings.Repeat(" ", utf8.RuneCountInString(split.Prefix)) + split.SQL
		s.beginPrefix(split.Prefix, padded, split.Last, before)
		return swallow
	}
	if s.beginImplicit(d, true) {
		return wait
	}
	s.beginQuery(sql, d, before)
	return swallow
}

// decides returns what decisions depend on of the session.
func (s *session) decides() engine.Session {
	return engine.Session{Forces: s.modeNamed, Schemas: s.schemas}
}

// executes is decides for an execution, of all rows or of the first ones.
func (s *session) executes(all bool) engine.Session {
	in := s.decides()
	in.Executes = all
	return in
}

// encodingKnown reports whether text means the same here as in Postgres.
func (s *session) encodingKnown(text []byte) bool {
	return s.settings.ClientEncoding == "UTF8" || wire.IsASCII(text)
}

// hasParameter reports whether text holds something like $1, which is an error in a
// simple Query.
func hasParameter(text []byte) bool {
	for i := 0; i+1 < len(text); i++ {
		if text[i] == '$' && '0' <= text[i+1] && text[i+1] <= '9' {
			return true
		}
	}
	return false
}

// containsFold reports whether text contains the lower-case word in any case.
func containsFold(text []byte, word string) bool {
	for i := 0; i+len(word) <= len(text); i++ {
		if text[i]|0x20 == word[0] && bytes.EqualFold(text[i:i+len(word)], []byte(word)) {
			return true
		}
	}
	return false
}

// parse decides on a Parse.
func (s *session) parse(message []byte, before *[]byte) action {
	name, sql, oids, ok := parseBody(message[wire.HeaderLen:])
	if !ok || !s.engine.Mentions(sql) {
		var change *viewChange
		if ok {
			s.watch.parse(name, sql)
			s.cache.forgetStatement(string(name))
			change = s.setView(string(name), nil)
		} else {
			s.cache.invalidateStatements()
		}
		s.pushView(replyParse, change)
		return relay
	}
	s.watch.parse(name, nil)
	s.mentioned(sql, before)
	if instead, shows := s.settingsIn(sql); instead != "" && (!shows || len(name) == 0) {
		s.cache.forgetStatement(string(name))
		s.pushView(replyParse, s.setView(string(name), nil))
		*before = appendParse(*before, string(name), instead, oids)
		return swallow
	}
	st := s.prepare(string(sql), oids)
	d := st.Decide(s.decides())
	if d.Route() == engine.RouteView {
		s.parseView(string(name), d.View(), oids, before)
		return swallow
	}
	if !d.Listed() {
		s.watch.parse(name, sql)
	}
	if s.beginImplicit(d, false) {
		return wait
	}
	if len(name) > 0 {
		d.Prepared()
	}
	n := &statement{name: string(name), st: st, ascii: wire.IsASCII(sql), after: s.queue.sent, settings: s.settings, known: s.settingsKnown()}
	if len(oids) > 0 && !slices.Contains(oids, 0) {
		// Declared types are those that Postgres takes; that there are no further
		// parameters shows when Bind's values are counted.
		n.params, n.haveParams = oids, true
	}
	s.cache.addStatement(n)
	s.queue.pushRef(replyParse, ref{statement: n, view: s.setView(n.name, nil)})
	return relay
}

// bind decides on a Bind, where something is known.
func (s *session) bind(message []byte, before *[]byte) action {
	portalName, statementName, rest, ok := bindNames(message[wire.HeaderLen:])
	if !ok {
		s.stopTracking()
		return relay
	}
	if v := s.views[string(statementName)]; v != nil {
		s.cache.forgetPortal(string(portalName))
		*before = s.ask(v, string(statementName), slices.Clone(message), *before)
		return swallow
	}
	st := s.cache.statements[string(statementName)]
	if st == nil || len(portalName) >= portalNameMax {
		s.cache.forgetPortal(string(portalName))
		s.queue.push(replyBind)
		return relay
	}
	d := st.st.Decide(s.decides())
	if s.beginImplicit(d, false) {
		return wait
	}
	if d.Route() == engine.RouteForward || d.Route() == engine.RouteCursor {
		// An application's point queries, most likely: to be counted, no more.
		p := &portal{name: string(portalName), s: st, batch: s.sent, unread: true}
		s.cache.addPortal(p)
		s.queue.pushRef(replyBind, ref{portal: p})
		return relay
	}
	p := &portal{name: string(portalName), s: st, batch: s.sent, after: s.queue.sent, message: append([]byte(nil), message...)}
	if !bindValues(p, p.message[len(message)-len(rest):]) {
		s.cache.forgetPortal(p.name)
		s.queue.push(replyBind)
		return relay
	}
	s.cache.addPortal(p)
	s.queue.pushRef(replyBind, ref{portal: p})
	p.order = s.queue.bound
	s.batch.kept++
	return relay
}

// describe notes that the server is about to describe something known.
func (s *session) describe(message []byte) {
	kind := replyPortal
	var st *statement
	if len(message) > wire.HeaderLen {
		name, _, err := wire.CString(message[wire.HeaderLen+1:])
		if message[wire.HeaderLen] == 'S' {
			kind = replyStatement
			if v := s.views[string(name)]; err == nil && v != nil {
				s.queue.pushRef(kind, ref{described: v})
				return
			}
			if err == nil {
				st = s.cache.statements[string(name)]
			}
		} else if err == nil {
			if p := s.cache.portals[string(name)]; p != nil && p.head != nil {
				s.queue.pushRef(kind, ref{placeholder: p})
				return
			} else if p != nil {
				st = p.s
			}
		}
	}
	if st == nil {
		s.queue.push(kind)
		return
	}
	if st.name == "" && kind == replyStatement {
		st.st.Decide(s.decides()).Prepared()
	}
	st.sentForRow = true
	st.sentForType = st.sentForType || kind == replyStatement
	s.queue.pushRef(kind, ref{statement: st})
}

// execute decides on an Execute, where some portal is known.
func (s *session) execute(message []byte, before *[]byte) action {
	name, rest, err := wire.CString(message[wire.HeaderLen:])
	if err != nil || len(rest) != 4 {
		s.stopTracking()
		return relay
	}
	p := s.cache.portals[string(name)]
	if u := s.functionsFind(); u != nil && u != p && (p == nil || p.unread) && s.status != 'E' {
		s.beginPlaceholder(u, message, before)
		return swallow
	}
	if p == nil || p.forwarded || s.status == 'E' {
		s.queue.push(replyExecute)
		return relay
	}
	if p.copied && s.status != 'E' {
		s.beginAgain(p, message, before)
		return swallow
	}
	rows := int32(binary.BigEndian.Uint32(rest))
	if p.answer != nil {
		s.beginReopen(p, message, rows, before)
		return swallow
	}
	began := s.arrival()
	d := p.s.st.Decide(s.executes(rows <= 0))
	s.record(spanDecide, began)
	forward := func(r plan.Reason) action {
		sent := s.forwardedBy(d, r)
		p.forwarded = true
		s.queue.push(replyExecute)
		s.queue.timed(d, sent)
		return relay
	}
	switch {
	case d.Route() == engine.RouteCursor:
		if reason := s.cursorBarred(d.Cursor()); reason != "" {
			return forward(reason)
		} else if s.executeDeclare(p, d, message, before) {
			return swallow
		}
		return forward(plan.ReasonNotSelect)
	case d.Route() != engine.RouteCandidate:
		return forward("")
	case d.Finish() != nil && (p.name != "" || rows > 0 && d.Finish().Select == ""): // what writes has no rows
		return forward(plan.ReasonNotSelect)
	case p.unread:
		return forward(plan.ReasonParameter) // decided otherwise meanwhile
	case s.settings.ClientEncoding != "UTF8" && !p.s.ascii:
		return forward(plan.ReasonSettings)
	case !p.bound && p.batch != s.sent:
		// Bound in an earlier batch that may still fail: then this Execute must.
		return forward(plan.ReasonParameter)
	case p.after != s.queue.sent, s.placeholderFailed && (p.name != "" || rows > 0):
		// SQL may have moved it since, or did so with another one.
		return forward(plan.ReasonParameter)
	case p.needsTypes() && (s.cache.statements[p.s.name] != p.s || s.queue.executes > 0 && p.s.after != s.queue.sent):
		// The statement's name is another's by now, or may be once the statements on
		// their way have run: its types cannot be asked for.
		return forward(plan.ReasonParameter)
	case !s.readAlike(p.s) && d.ReadsSettings():
		return forward(plan.ReasonSettings)
	case s.gateBarred(p) != "":
		return forward(s.gateBarred(p))
	}
	s.beginExecute(p, d, message, rows, before)
	return swallow
}

// settingsKnown reports whether nothing is on its way that may change the settings that the server
// reports.
func (s *session) settingsKnown() bool { return s.queue.sent == s.knownAt }

// readAlike reports whether the server read a statement's literals as it would read them now: it
// does that at Parse (parse_analyze_varparams), by the settings of then.
func (s *session) readAlike(p *statement) bool {
	return p.after == s.queue.sent ||
		p.known && s.settingsKnown() && p.settings.TimeZone == s.settings.TimeZone && p.settings.DateStyle == s.settings.DateStyle &&
			p.settings.IntervalStyle == s.settings.IntervalStyle
}
