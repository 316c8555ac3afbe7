package proxy

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"pgaccel/engine"
	"pgaccel/internal/trace"
	"pgaccel/plan"
	"pgaccel/wire"
)

// Statements are observed while there is a log or a tracer for them (statementLog.enabled): what they were, who has answered, and how they have
// ended. One is made when a client's message comes, and goes with that: it is at hand (replies.at) until the server has it, and
// then in the queue's entry.

// textsMax bounds the bytes of prepared statements that a session remembers for that.
const textsMax = 256 << 10

// The routes of statements, as pgaccel.queries has them.
const (
	routeAccelerated = "accelerated"
	routePartial     = "partial"
	routeForwarded   = "forwarded"
)

// observed is a statement that a client has sent, be it a Query or an Execute, until it has ended.
type observed struct {
	began    time.Time
	text     string          // as the client has sent it; "" where it is not known
	size     int             // of it in bytes
	decision engine.Decision // on it; nil where it was relayed without a look
	route    string
	reason   plan.Reason // that the session has found; "" for that of decision
	command  string      // of its tag, of several that of the last one; "" where the server has sent none
	rows     int         // of its tags: returned, or affected
	limit    int         // of rows, of an Execute
	code     string      // SQLSTATE of the error that it has ended with
	span     *trace.Span // nil for none
	sent     time.Time   // to the server, if there is a span
}

// shape returns the text to be shown, and why the statement is not, or not wholly, to be answered here.
func (o *observed) shape(e engine.Watcher) (text string, why plan.Reason) {
	if o.decision != nil {
		if text, why = o.decision.Shape(); text != "" {
			return text, why
		}
	}
	switch {
	case o.text != "" && e != nil:
		return e.Shape(o.text)
	case o.size > 0:
		return fmt.Sprintf("<%d bytes>", o.size), why
	}
	return "<unknown>", why
}

// splitTag returns the parts of a tag (CommandComplete): INSERT 0 5, SELECT 5, CREATE TABLE.
func splitTag(tag []byte) (command string, rows int) {
	command = strings.TrimRight(string(tag), " 0123456789")
	if numbers := string(tag[len(command):]); numbers != "" {
		rows, _ = strconv.Atoi(numbers[strings.LastIndexByte(numbers, ' ')+1:])
	}
	return command, rows
}

// ended notes what the server has answered to the end of one of its commands.
func (o *observed) ended(typ byte, message []byte) {
	switch typ {
	case wire.CommandComplete:
		if tag, _, err := wire.CString(message[wire.HeaderLen:]); err == nil {
			command, rows := splitTag(tag)
			o.command = command
			o.rows += rows
		}
	case wire.PortalSuspended:
		o.rows = o.limit
	}
}

// refusedBy notes that the engine has answered with an error.
func (o *observed) refusedBy(err error) {
	if f := (*plan.Forward)(nil); o != nil && errors.As(err, &f) {
		o.reason = f.Reason
	}
}

// texts are those that prepared statements and portals of a session stand for. Nothing is in them while the log is off.
type texts struct {
	statements, portals map[string]string
	size                int // of statements
}

func (t *texts) parse(name, text []byte) {
	n := string(name)
	t.size -= len(t.statements[n])
	delete(t.statements, n)
	if text == nil || len(text) > engine.SeenTextMax || t.size+len(text) > textsMax {
		return
	}
	if t.statements == nil {
		t.statements = map[string]string{}
	}
	t.statements[n] = string(text)
	t.size += len(text)
}

func (t *texts) bind(portal, statement []byte) {
	text, ok := t.statements[string(statement)]
	if !ok {
		delete(t.portals, string(portal))
		return
	}
	if t.portals == nil {
		t.portals = map[string]string{}
	}
	t.portals[string(portal)] = text
}

// observe takes note of a message of the client's, which may have been given before. It is false where the rest of it has to come
// first; of one that is too large to be looked at nothing is known.
func (s *session) observe(typ byte, message []byte, total int, look bool) bool {
	switch typ {
	case wire.Query, wire.Parse, wire.Bind, wire.Execute, wire.Close:
	default:
		return true
	}
	if len(message) < total {
		if look {
			return false
		}
		message = nil
	}
	switch typ {
	case wire.Query, wire.Execute:
		if s.queue.at == nil {
			s.queue.at = s.observed(typ, message, total)
		}
	case wire.Parse:
		if message == nil {
			s.texts = texts{} // it is not known whose text it is
		} else if name, text, _, ok := parseBody(message[wire.HeaderLen:]); ok {
			s.texts.parse(name, text)
		}
	case wire.Bind:
		if portal, statement, _, ok := bindNames(message[min(wire.HeaderLen, len(message)):]); ok {
			s.texts.bind(portal, statement)
		} else {
			s.texts.portals = nil
		}
	case wire.Close:
		if message != nil && len(message) > wire.HeaderLen && message[wire.HeaderLen] == 'S' {
			if name, _, err := wire.CString(message[wire.HeaderLen+1:]); err == nil {
				s.texts.parse(name, nil)
			}
		}
	}
	return true
}

func (s *session) observed(typ byte, message []byte, total int) *observed {
	o := &observed{began: time.Now(), route: routeForwarded}
	if typ == wire.Query {
		o.size = total - wire.HeaderLen - 1
	}
	defer func() { o.span = s.slow.tracer.Statement(o.text, o.began) }()
	if message == nil {
		return o
	}
	if typ == wire.Query {
		if text := queryText(message); len(text) <= engine.SeenTextMax {
			o.text = string(text)
		}
	} else if name, rest, err := wire.CString(message[wire.HeaderLen:]); err == nil && len(rest) == 4 {
		o.text = s.texts.portals[string(name)]
		o.limit = int(int32(binary.BigEndian.Uint32(rest)))
	}
	return o
}

// forwardedBy counts a statement that is forwarded, and returns when; reason is "" for the decision's own.
func (s *session) forwardedBy(d engine.Decision, reason plan.Reason) time.Time {
	if o := s.queue.at; o != nil {
		o.decision, o.reason = d, reason
	}
	return d.Forwarded(reason)
}

// answeredHere notes that the statement at hand was answered here, with rows and what tag; none where there may be more.
func (s *session) answeredHere(command string, rows int) {
	o := s.queue.at
	if o == nil {
		return
	}
	x := s.local
	o.route, o.reason, o.code, o.command, o.rows = routeAccelerated, "", "", command, rows
	if o.decision = x.decision; o.decision == nil && x.cursor != nil {
		o.decision = x.cursor.decision
	}
	if x.decision != nil && x.decision.Finish() != nil {
		o.route = routePartial
	}
}

// answeredOrFailed is statementEnded for the statement at hand, where it has come to something.
func (s *session) answeredOrFailed() {
	if o := s.queue.at; o != nil && (o.route != routeForwarded || o.command != "" || o.code != "") {
		s.statementEnded(o)
	}
	s.queue.at = nil
}

// observedEnd notes the end of a command, in answer to a message of that kind.
func (s *session) observedEnd(kind reply, typ byte, message []byte) {
	if o := s.queue.observed(); o != nil {
		if o.ended(typ, message); kind == replyExecute {
			s.statementEnded(o)
		}
	}
}

// observedReady notes a ReadyForQuery with that status, before its entry is taken from the queue.
func (s *session) observedReady(status byte) {
	if o := s.queue.observed(); o == nil {
	} else if s.local != nil && s.local.simple && s.local.passedOn() {
		s.queue.at = o // more of it may come
	} else {
		s.statementEnded(o)
	}
	if len(s.texts.portals) > 0 && status == 'I' && !s.inBatch && s.sent-s.done <= 1 {
		clear(s.texts.portals) // they went with their transaction, and none has been made since
	}
}

// observedFailed notes an error of the server's, which is in answer to a message of kind k if one is owed.
func (s *session) observedFailed(k reply, owed bool, code string, fatal bool) {
	o := s.queue.at
	if owed && k&replyOwn == 0 {
		o = s.queue.observed()
	}
	if o == nil {
		return
	}
	if o.code = code; fatal || k == replyExecute|replyRef {
		s.statementEnded(o)
	}
}

// statementEnded has a statement logged, if it has taken so long, and its span ended.
func (s *session) statementEnded(o *observed) {
	if o == nil {
		return
	}
	took, least := time.Since(o.began), s.slow.least.Load()
	logged := least >= 0 && took >= time.Duration(least)
	if !logged && o.span == nil {
		return
	}
	if o.route == routeForwarded && !o.sent.IsZero() {
		o.span.Record(spanForward, o.sent, o.began.Add(took))
	}
	line := slowLine{observed: *o, engine: s.watch.engine, took: took, logged: logged, user: s.info.user, database: s.info.database, pid: s.pid()}
	if name := s.info.application.Load(); name != nil {
		line.application = *name
	}
	s.slow.add(line)
}

// span is that of the statement at hand.
func (s *session) span() *trace.Span {
	if o := s.queue.at; o != nil {
		return o.span
	}
	return nil
}

// traced is the parent of executions of the statement at hand.
func (s *session) traced() context.Context { return trace.With(s.ctx, s.span()) }

// The spans that a session records, below that of a statement.
const spanDecide, spanGate, spanForward, spanWrite = "decide", "gate", "forward", "write"

// unwritten is a statement that has been answered here, but for the driver's handing the last rows to the kernel.
type unwritten struct {
	*observed           // nil for none: without a span it ends before
	since     time.Time // its rows have been computed
}

// written says that the driver has handed all that was put out to the kernel, as far as that takes it.
func (s *session) written() {
	u := s.unwritten
	if u.observed == nil {
		return
	}
	s.unwritten = unwritten{}
	u.span.Record(spanWrite, u.since, time.Now())
	s.statementEnded(u.observed)
}

// arrival is when the statement at hand came, if it has a span.
func (s *session) arrival() (at time.Time) {
	if s.span() != nil {
		at = s.queue.at.began
	}
	return at
}

// tick is when something begins that is a span of its own: now, if the statement at hand has a span.
func (s *session) tick() (now time.Time) {
	if s.span() != nil {
		now = time.Now()
	}
	return now
}

// record records what has begun then, if it was to be recorded.
func (s *session) record(name string, began time.Time) {
	if span := s.span(); span != nil && !began.IsZero() {
		span.Record(name, began, time.Now())
	}
}

// pid is the server's process of the session, 0 before it has said so.
func (s *session) pid() int32 {
	if len(s.key) < 4 {
		return 0
	}
	return int32(binary.BigEndian.Uint32(s.key))
}
