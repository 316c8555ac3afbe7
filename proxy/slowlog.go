package proxy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"pgaccel/engine"
	"pgaccel/plan"
	"pgaccel/wire"
)

// The slow-query log (Settings.SlowQueryLog) has a line for each statement of a client's that took at least so long, accelerated or
// forwarded, as PostgreSQL's log_min_duration_statement has: a Query of several statements is one, and so is each Execute. Those
// that end with an error are in it, too. Values of clients are not: texts are shown as pgaccel.queries shows them.

const (
	// slowLines bounds the lines that wait to be written; more are counted only.
	slowLines = 1024
	// slowTexts bounds the bytes of prepared statements that a session remembers for the log.
	slowTexts = 256 << 10
)

// slowLog writes the lines of all sessions behind their backs: the text of a statement that was relayed without a look is parsed
// for its line.
type slowLog struct {
	log    *slog.Logger
	engine engine.Watcher // nil for none: then texts are not known
	least  atomic.Int64   // nanoseconds that a statement has to take; negative logs none
	wg     *sync.WaitGroup

	mu      sync.Mutex
	lines   []slowLine
	lost    int // lines there was no room for
	writing bool
}

// slowOff is a least time that nothing takes.
const slowOff = -1

// slowLine is a statement that has ended, and of whose session it was.
type slowLine struct {
	observed
	took                        time.Duration
	user, database, application string
	pid                         int32
}

// enabled reports whether statements are to be observed.
func (l *slowLog) enabled() bool { return l != nil && l.least.Load() >= 0 }

// add has a line written, soon.
func (l *slowLog) add(line slowLine) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) >= slowLines {
		l.lost++
		return
	}
	if l.lines = append(l.lines, line); !l.writing {
		l.writing = true
		l.wg.Go(l.write)
	}
}

// write writes the lines that there are.
func (l *slowLog) write() {
	for {
		l.mu.Lock()
		lines, lost := l.lines, l.lost
		l.lines, l.lost = nil, 0
		l.writing = len(lines) > 0
		l.mu.Unlock()
		if len(lines) == 0 {
			return
		}
		for i := range lines {
			l.writeLine(&lines[i])
		}
		if lost > 0 {
			l.log.Warn("slow-query log: statements end faster than they can be written: some are left out", "lines", lost)
		}
	}
}

func (l *slowLog) writeLine(line *slowLine) {
	text, why := line.shape(l.engine)
	list := []any{"query", text, "route", line.route}
	if line.reason == "" && line.route != routeAccelerated {
		line.reason = why
	}
	if line.reason != "" {
		list = append(list, "reason", string(line.reason))
	}
	list = append(list, "duration", line.took)
	if line.code != "" {
		list = append(list, "sqlstate", line.code)
	} else {
		list = append(list, "rows", line.rows)
	}
	if line.command != "" {
		list = append(list, "command", line.command)
	}
	list = append(list, "user", line.user, "database", line.database)
	if line.application != "" {
		list = append(list, "application_name", line.application)
	}
	l.log.Info("slow query", append(list, "server_pid", line.pid)...)
}

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
	if text == nil || len(text) > engine.SeenTextMax || t.size+len(text) > slowTexts {
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

// statementEnded writes the line of a statement, if it is worth one.
func (s *session) statementEnded(o *observed) {
	if o == nil {
		return
	}
	took, least := time.Since(o.began), s.slow.least.Load()
	if least < 0 || took < time.Duration(least) {
		return
	}
	line := slowLine{observed: *o, took: took, user: s.info.user, database: s.info.database, pid: s.pid()}
	if name := s.info.application.Load(); name != nil {
		line.application = *name
	}
	s.slow.add(line)
}

// pid is the server's process of the session, 0 before it has said so.
func (s *session) pid() int32 {
	if len(s.key) < 4 {
		return 0
	}
	return int32(binary.BigEndian.Uint32(s.key))
}
