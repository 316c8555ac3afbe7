package proxy

import (
	"bytes"

	"pgaccel/wire"
)

// fromServer decides on a message of the server. message holds what has come of
// total bytes, at least the header.
func (s *session) fromServer(typ byte, message []byte, total int) action {
	k, owed := s.queue.first()
	kind, own := k&replyKind, owed && k&replyOwn != 0
	whole := len(message) == total
	expect := func(want ...reply) bool {
		if owed {
			for _, w := range want {
				if kind == w {
					return true
				}
			}
		}
		s.stopTracking()
		return false
	}
	done := func() action {
		if own {
			return swallow
		}
		return relay
	}
	switch typ {
	case wire.DataRow:
		if !own {
			if c := s.checking(); c != nil {
				if total > lookLimit {
					c.check.give("a row larger than what is looked at")
					return relay
				}
				if !whole {
					return wait
				}
				c.check.row(message)
			}
			return relay
		}
		if f := s.finishing(); f != nil && s.queue.ref().rest {
			return f.rowCame(s, message, total)
		}
		if !whole {
			return wait
		}
		if kind == replyExecute && s.local != nil {
			s.local.stage.row(message[wire.HeaderLen:])
		} else if kind == replyExecute && s.implicit.stage == implicitAsking {
			if row, ok := readRow(message[wire.HeaderLen:]); ok {
				s.implicit.gate = append(s.implicit.gate, row)
			}
		} else if kind == replyExecute && s.asking != nil {
			s.asking.rightsRow(message[wire.HeaderLen:])
		}
		return swallow
	case wire.ParseComplete:
		if !expect(replyParse) {
			return relay
		}
		s.pop(own)
		return done()
	case wire.BindComplete:
		if !expect(replyBind) {
			return relay
		}
		if p := s.queue.ref().portal; p != nil {
			p.bound = true
		}
		s.pop(own)
		return done()
	case wire.CloseComplete:
		if !expect(replyClose) {
			return relay
		}
		s.pop(own)
		return done()
	case wire.ParameterDescription:
		return s.described(typ, message, whole, k, expect(replyStatement))
	case wire.RowDescription, wire.NoData:
		if owed && (kind == replyQuery || kind == replyExecute) {
			return done()
		}
		return s.described(typ, message, whole, k, expect(replyStatement, replyPortal))
	case wire.CommandComplete, wire.EmptyQueryResponse, wire.PortalSuspended:
		if !whole {
			return wait
		}
		if !expect(replyExecute, replyQuery) {
			return relay
		}
		s.copyIn = false
		if !own && typ == wire.CommandComplete {
			s.commandEnded(message[wire.HeaderLen:])
		} else if !own && typ == wire.PortalSuspended {
			s.commands++
		}
		if f := s.finishing(); f != nil && kind == replyExecute && s.queue.ref().rest {
			f.tag = bytes.Clone(message)
		}
		s.observedEnd(kind, typ, message)
		if kind == replyExecute {
			s.queue.completed(typ != wire.PortalSuspended) // of which more rows may come
			s.pop(own)
		}
		if tag := s.shownTag(message[wire.HeaderLen:]); tag != nil && kind == replyQuery {
			s.ahead = tag
			return swallow
		}
		if !own && s.checking() != nil {
			return s.checking().commandEnded(s, typ, message)
		}
		if !own && kind == replyExecute && s.local != nil {
			if d, ok := s.local.stage.(*declaring); ok {
				d.executed(s)
				return relay
			}
		}
		return done()
	case wire.ReadyForQuery:
		if !whole {
			return wait
		}
		return s.ready(message)
	case wire.ErrorResponse:
		if !whole {
			return wait
		}
		do := s.failed(message[wire.HeaderLen:])
		if do == relay && s.placeholderRun(message[wire.HeaderLen:]) {
			s.placeholderFailed = true
			s.ahead = wire.AppendError(nil, placeholderError)
			return swallow
		}
		if do == relay {
			if f := s.settingFailed(message[wire.HeaderLen:]); f != nil {
				s.ahead = f
				return swallow
			}
		}
		return do
	case wire.NoticeResponse:
		held := s.holdsNotices(k, owed)
		if held == nil {
			return relay
		}
		if !whole {
			return wait
		}
		*held = append(*held, message...)
		return swallow
	case wire.ParameterStatus:
		if !whole {
			return wait
		}
		s.setting(message[wire.HeaderLen:])
		return relay
	case wire.BackendKeyData:
		return s.backendKey(message, total)
	case wire.CopyInResponse:
		if !expect(replyExecute, replyQuery) {
			return relay
		}
		return s.copyBegins()
	case wire.CopyBothResponse:
		s.stopTracking()
	case wire.NegotiateProtocolVersion:
		s.clamped = false
	case wire.Authentication:
		return s.authentication(message, total)
	case wire.NotificationResponse, wire.CopyOutResponse, wire.CopyData, wire.CopyDone, wire.FunctionCallResponse:
	default:
		s.stopTracking()
	}
	return relay
}

// pop removes the first entry of the queue and what the server owes nothing for.
func (s *session) pop(own bool) {
	s.queue.pop()
	s.queue.dropCopyEnds()
	if own && s.queue.owns == 0 && s.local != nil && !s.local.simple {
		s.local.stage.answered(s)
	}
	if own && s.queue.owns == 0 && s.asking != nil {
		s.askedRights()
	}
}

// described takes the answers to Describe.
func (s *session) described(typ byte, message []byte, whole bool, k reply, expected bool) action {
	if !expected {
		return relay
	}
	own := k&replyOwn != 0
	r := s.queue.ref()
	if r.query && typ == wire.NoData {
		s.pop(own)
		return swallow // as a Query does, which describes rows only
	}
	if own || r.statement != nil || r.described != nil || r.placeholder != nil {
		if !whole {
			return wait
		}
		body := message[wire.HeaderLen:]
		if r.described != nil && typ == wire.ParameterDescription {
			return s.describedView(r.described, body)
		}
		if p := r.placeholder; p != nil && typ == wire.RowDescription {
			if own {
				p.head = bytes.Clone(message)
			} else if isPlaceholder(body) {
				s.ahead = p.head
				s.pop(false)
				return swallow
			}
		} else if st := r.statement; st != nil {
			switch typ {
			case wire.ParameterDescription:
				st.readParams(body)
			case wire.RowDescription:
				if fields, ok := readFields(body); ok && !st.haveFields {
					st.fields, st.haveFields = fields, true
				}
			}
		} else if own && s.local != nil {
			s.local.stage.described(s, typ, message)
		}
	}
	if typ != wire.ParameterDescription {
		s.pop(own)
	}
	if own {
		return swallow
	}
	return relay
}

// commandEnded looks at the tag of a statement of the client.
func (s *session) commandEnded(body []byte) {
	s.commands++
	tag, _, err := wire.CString(body)
	if err != nil {
		return
	}
	s.gateEnded(tag)
	s.watch.succeeded(tag)
	s.prepares = s.prepares || bytes.Equal(tag, []byte("PREPARE"))
	if len(s.cache.statements) == 0 && len(s.cache.portals) == 0 {
		return
	}
	switch {
	case bytes.HasPrefix(tag, []byte("DEALLOCATE")), bytes.HasPrefix(tag, []byte("DISCARD")),
		bytes.Equal(tag, []byte("PREPARE")):
		s.cache.invalidateStatements()
	case bytes.Equal(tag, []byte("COMMIT")), bytes.Equal(tag, []byte("ROLLBACK")),
		bytes.Equal(tag, []byte("PREPARE TRANSACTION")), bytes.HasPrefix(tag, []byte("CLOSE CURSOR")),
		bytes.Equal(tag, []byte("DECLARE CURSOR")):
		s.cache.invalidatePortals()
	}
}

// setting notes a reported setting.
func (s *session) setting(body []byte) {
	name, rest, err := wire.CString(body)
	if err != nil {
		return
	}
	value, _, err := wire.CString(rest)
	if err != nil {
		return
	}
	switch string(name) {
	case "DateStyle":
		s.settings.DateStyle = string(value)
	case "IntervalStyle":
		s.settings.IntervalStyle = string(value)
	case "TimeZone":
		s.settings.TimeZone = string(value)
	case "application_name":
		application := string(value)
		s.info.application.Store(&application)
		s.foreign = string(value) == foreignName
	case "client_encoding":
		s.settings.ClientEncoding = string(value)
	}
}

// copyBegins follows the server into copy-in mode, where it ignores Sync and Flush.
func (s *session) copyBegins() action {
	s.changes.waited = false
	before := s.queue.len()
	ended, odd := s.queue.copyBegins()
	if odd {
		s.stopTracking()
		return relay
	}
	dropped := before - s.queue.len()
	if ended {
		dropped--
	}
	s.done += uint64(dropped)
	if dropped > 0 && !ended {
		s.copySync = true
	}
	if dropped > 0 {
		s.batch.sent-- // the batch goes on, and has done something
	}
	s.copyIn = !ended
	if s.settling() != nil {
		s.stopTracking() // the Execute fails, and the copy with it
	}
	return relay
}

// ready takes a ReadyForQuery.
func (s *session) ready(message []byte) action {
	if len(message) != wire.HeaderLen+1 {
		s.stopTracking()
		return relay
	}
	s.queue.dropCopyEnds()
	k, owed := s.queue.first()
	switch k & replyKind {
	case replySync, replyQuery, replyFunction, replyStartup:
	default:
		owed = false
	}
	if !owed {
		s.stopTracking()
		return relay
	}
	s.observedReady(message[wire.HeaderLen])
	s.queue.completed(true)
	s.queue.pop()
	s.queue.dropCopyEnds()
	s.showing = false
	s.started, s.copyIn, s.copySync = true, false, false
	s.status = message[wire.HeaderLen]
	if k&replyOwn != 0 && s.local != nil && s.local.ledBack && s.status == 'E' {
		s.status = 'T' // a ROLLBACK TO of pgaccel's is on its way
	}
	s.gateReady(k)
	s.changes.waited = false
	if k&replyOwn == 0 {
		s.done++
	}
	if s.done == s.sent && s.queue.executes == 0 {
		s.knownAt = s.queue.sent
	}
	if s.status == 'I' {
		s.tx.End()
	}
	if s.status != 'T' {
		s.cache.forgetCursors()
	}
	if s.status == 'I' && len(s.cache.portals) > 0 {
		s.cache.transactionEnded(s.done)
	}
	if s.status == 'E' && k&replyOwn == 0 && s.functionsFind() != nil {
		// Nothing has been run since its Bind: whatever ends this state ends it.
		s.cache.forgetPortal("")
	}
	do := relay
	switch {
	case s.local != nil && (k&replyOwn == 0 || s.local.simple): // an Execute waits for no Sync of its own
		do = s.local.stage.ready(s, k)
	case k&replyOwn != 0 && s.implicit.busy():
		do = s.implicitReady()
	case k&replyOwn != 0:
		do = swallow
	}
	if k&replyHeld != 0 {
		return swallow
	}
	return do
}

// failed takes an ErrorResponse.
func (s *session) failed(body []byte) action {
	severity := wire.ErrorField(body, 'V')
	if severity == nil {
		severity = wire.ErrorField(body, 'S')
	}
	s.clamped, s.changes.waited = false, false
	s.watch.forget()
	fatal := string(severity) == "FATAL" || string(severity) == "PANIC"
	if fatal {
		s.ends(endError(body))
	}
	if !s.started && s.explained(body) {
		s.ending = true
		s.abandon()
		return swallow
	}
	k, owed := s.queue.first()
	code := string(wire.ErrorField(body, 'C'))
	s.observedFailed(k, owed, code, fatal)
	if fatal {
		s.ending = true
		s.abandon()
		return relay
	}
	if !owed {
		s.stopTracking()
		return relay
	}
	if s.local == nil {
		s.block = 0
	}
	if k&replyOwn == 0 {
		s.block = 0
		if code == queryCanceled {
			s.cancelServed()
		}
	}
	switch k & replyKind {
	case replySync, replyQuery, replyFunction, replyStartup:
		s.queue.completed(false)
		s.copyIn = false
		if s.local != nil && (k&replyOwn != 0 || s.local.passedOn()) {
			return s.local.stage.failed(s, k, body)
		}
		return relay
	}
	if s.copyIn && s.copySync {
		// It is not known which Syncs the server will answer.
		s.copyIn = false
		s.stopTracking()
		return relay
	}
	s.copyIn = false
	s.skipToSync()
	if s.asking != nil && s.skipping {
		s.answeredOrFailed()
		return s.askFailed(k&replyOwn != 0, code)
	}
	// The messages of a local execution are the last that were sent: where a Sync stands
	// before them, the error is not theirs.
	if s.local != nil && (s.local.simple || s.skipping) {
		return s.local.stage.failed(s, k, body)
	}
	if k&replyOwn != 0 && s.local == nil && s.implicit.busy() {
		s.implicit.failed = true
		if code == queryCanceled && s.implicit.stage != implicitClosing {
			s.implicit.cancelled, s.implicit.cause = true, wire.AppendMessage(nil, wire.ErrorResponse, body)
		}
		return swallow
	}
	return relay
}

// skipToSync mirrors the server after an error in an extended batch: everything up
// to the next Sync is ignored, and was not done. The message that failed, the first, was not
// either, but that a Parse gives up the unnamed statement before it reads the text
// (exec_parse_message in postgres.c).
func (s *session) skipToSync() {
	var views []*viewChange
	k, _ := s.queue.first()
	v := s.queue.ref().view
	unnamedGone := k&replyKind == replyParse && v != nil && v.name == ""
	defer func() {
		if s.undoViews(views); unnamedGone {
			s.putView("", nil)
		}
	}()
	for {
		k, ok := s.queue.first()
		if !ok {
			s.skipping = true
			return
		}
		if k&replyKind == replySync {
			return
		}
		switch k & replyKind {
		case replyQuery, replyFunction:
			s.done++ // no ReadyForQuery will come
		}
		r := s.queue.ref()
		if r.statement != nil && k&replyKind == replyParse {
			s.cache.parseFailed(r.statement)
		}
		if r.statement != nil && (k&replyKind == replyStatement || k&replyKind == replyPortal) {
			r.statement.sentForType, r.statement.sentForRow = false, false
		}
		if r.portal != nil {
			s.cache.bindFailed(r.portal)
		}
		if r.view != nil {
			views = append(views, r.view)
		}
		s.queue.pop()
	}
}
