package proxy

import (
	"bytes"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"pgaccel/engine"
	"pgaccel/plan"
	"pgaccel/wire"
)

// A cursor of SQL is answered here as long as the client does nothing but FETCH forwards, in simple
// Queries:
//
//	client                pgaccel to the server           who has the cursor
//	DECLARE, in a block   gate, DECLARE                   the server, at its start
//	FETCH                 describe, gate; computes        pgaccel, if the gate shows the same snapshot
//	FETCH ...             nothing, a Sync now and then    pgaccel
//	CLOSE, COMMIT         the same                        nobody
//	anything else         MOVE FORWARD n, the message     the server, for good
//
// The DECLARE may also come in the extended protocol, as postgres_fdw sends it.
//
// The server has declared it, and holds its snapshot and its locks. It has run nothing of it: so long as
// the client has had no row the FETCH is just forwarded, and later one MOVE brings it to where the client
// is. For that, the rows must have the same order there, to the last; where they have not, the server gets a cursor of
// that name over the rows of pgaccel's instead, which are parameters (engine/cursor.go). So whatever looks
// at the cursor, be it MOVE, FETCH BACKWARD, WHERE CURRENT OF, a function, or a message of the extended
// protocol, finds it where it is without pgaccel; nothing here depends on which of these a message is.
// A savepoint, a changed setting, a write of the session's are such messages, too: none of them comes
// between a cursor's DECLARE and a FETCH that is answered here.
//
// The snapshot of a cursor is that of its DECLARE. In READ COMMITTED that lies between the gates before
// DECLARE and before the first FETCH, and is theirs if they show the same one.
//
// A cursor WITH HOLD is the server's from COMMIT on, which reads the rest of its rows there.
//
// Where a part of its SELECT is refused (finishcursor.go), the first FETCH has it declared anew over what is computed here, and is
// the server's, as all that follow are.
//
// psqlODBC sends BEGIN, DECLARE and the first FETCH as one Query; these go to the server one by one, as
// the parts of RouteSplit do.

// cursor is a cursor that the session has declared.
type cursor struct {
	name     string
	hold     bool
	decision engine.Decision
	snapshot string            // of the gate before DECLARE
	settings wire.TextSettings // and those of then
	head     []byte            // RowDescription
	answer   *answer           // nil before the first FETCH
	stirred  time.Time         // when the server last had a message
	ended    bool              // a FETCH has met its end
	rows     *engine.Finish    // that make its rows on the server; nil where the server's own are the same
	scrolls  bool              // with rows: the server may read it backwards
}

func newCursor(d engine.Decision) *cursor {
	c := d.Cursor()
	return &cursor{name: c.Name, hold: c.Hold, decision: d, rows: c.RowSet, scrolls: c.Scrolls}
}

// foreignName is the application_name that postgres_fdw gives itself. It does nothing with its cursors but to FETCH forwards, and to go
// back to the start.
const foreignName = "postgres_fdw"

// cursorNameMax bounds the names of cursors that are followed: none that the server cuts is as short.
const cursorNameMax = 60

// declareCursor begins with a Query that declares a cursor.
func (s *session) declareCursor(d engine.Decision, before *[]byte) action {
	c := d.Cursor()
	if s.status == 'I' && !c.Begins || s.status == 'T' && s.block != 'T' || s.implicit.open() {
		return s.forwardQuery(d, plan.ReasonNotSelect)
	}
	if reason := s.cursorBarred(c); reason != "" {
		return s.forwardQuery(d, reason)
	}
	// Spaces stand for what is sent apart, as for RouteSplit.
	padded := strings.Repeat(" ", utf8.RuneCountInString(c.Prefix)) + c.Declare + c.Fetch
	x := &localExecution{simple: true, decision: d, sql: padded, started: time.Now(),
		cursor: newCursor(d)}
	if c.Prefix == "" {
		s.local = x
		*before = s.gateDeclare(*before, &gatingDeclare{}, false)
		return swallow
	}
	s.relayQuery()
	x.stage = &runningPrefix{}
	s.local = x
	*before = appendQuery(*before, c.Prefix)
	return swallow
}

// cursorBarred says why a cursor is not followed, "" where it is.
func (s *session) cursorBarred(c *engine.Cursor) plan.Reason {
	if len(c.Name) > cursorNameMax {
		return plan.ReasonNotSelect
	}
	if c.Scrolls && !s.foreign {
		return plan.ReasonShape // WHERE CURRENT OF would not find its row
	}
	return ""
}

// executeDeclare begins with an Execute of a DECLARE; false where it is to be forwarded.
func (s *session) executeDeclare(p *portal, d engine.Decision, message []byte, dst *[]byte) bool {
	if c := d.Cursor(); c.Prefix != "" || c.Fetch != "" || s.block != 'T' || s.unsettled() || s.gateBarred(nil) != "" ||
		s.settings.ClientEncoding != "UTF8" && !p.s.ascii || !s.readAlike(p.s) && d.ReadsSettings() {
		return false
	}
	s.local = &localExecution{decision: d, portal: p, original: bytes.Clone(message), started: time.Now(), cursor: newCursor(d)}
	*dst = s.gateExecute(*dst)
	return true
}

// gatingDeclare is the stage of a DECLARE while the server runs the gate before it.
type gatingDeclare struct {
	gateRun
	ended batchError
}

func (s *session) gateDeclare(b []byte, g *gatingDeclare, anew bool) []byte {
	s.local.stage = g
	b = s.gateBatch(b, &g.gateRun, anew)
	s.own(replySync)
	return appendEmpty(b, wire.Sync)
}

func (g *gatingDeclare) failed(s *session, k reply, body []byte) action {
	code := string(wire.ErrorField(body, 'C'))
	switch {
	case g.guarded && g.gone(k, code):
		g.ended = gateGone
	case g.guarded && g.refused(k, code):
		g.ended = gateRefused
	default:
		g.ended = shownError
		return s.relayOwn(body)
	}
	return swallow
}

func (g *gatingDeclare) ready(s *session, k reply) action {
	if k&replyOwn == 0 {
		return relay
	}
	switch g.ended {
	case shownError:
		return s.queryOver()
	case gateGone:
		again := &gatingDeclare{}
		again.retried = true
		s.toServer.add(s.gateDeclare(s.undoGate(nil, &g.gateRun), again, true))
	case gateRefused:
		s.refused = time.Now()
		s.ungateQuery(&g.gateRun, plan.ReasonPrivilege)
	default:
		if s.gateAnswered(&g.gateRun) {
			s.declare(engine.GateSnapshot(g.answer.Rows))
		}
	}
	return swallow
}

// declare has the server declare the cursor, behind its gate.
func (s *session) declare(snapshot string) {
	x := s.local
	x.cursor.snapshot, x.cursor.settings = snapshot, s.settings
	x.stage = &declaring{}
	if o := s.queue.at; o != nil {
		o.decision = x.decision
	}
	if !x.simple {
		x.portal.forwarded = true
		s.queue.push(replyExecute)
		s.toServer.add(appendEmpty(bytes.Clone(x.original), wire.Flush))
		return
	}
	s.relayQuery()
	s.toServer.add(appendQuery(nil, strings.TrimSuffix(x.sql, x.decision.Cursor().Fetch)))
}

// declaring is the stage of a DECLARE that the server runs.
type declaring struct {
	passive
	broke bool // the client has seen an error; ReadyForQuery follows
}

func (d *declaring) failed(s *session, k reply, body []byte) action {
	if !s.local.simple {
		return s.executeFailed(k, body)
	}
	d.broke = true
	return relay
}

// executed takes the end of an Execute of a DECLARE.
func (d *declaring) executed(s *session) {
	s.cache.addCursor(s.local.cursor)
	s.tell(false)
	s.finish()
}

func (d *declaring) ready(s *session, k reply) action {
	x := s.local
	c := x.decision.Cursor()
	if d.broke || s.status != 'T' {
		s.tell(false)
		s.finish()
		return relay
	}
	if c.Fetch == "" {
		s.cache.addCursor(x.cursor)
		s.tell(false)
		s.finish()
		return relay
	}
	x.sql, x.max = c.Fetch, int32(c.Rows)
	s.toServer.add(s.gateQuery(nil))
	return swallow
}

// beforeCursors looks at a message of the client's while cursors are declared. done says that do is what
// becomes of it; else it goes its way.
func (s *session) beforeCursors(typ byte, message []byte, look, whole bool, before *[]byte) (do action, done bool) {
	switch typ {
	case wire.Flush, wire.Sync, wire.CopyData, wire.CopyDone, wire.CopyFail, wire.Terminate: // nothing, here
		return relay, false
	}
	switch {
	case s.queue.len() > 0:
		s.changes.waited = true // until what is on its way is answered
		return wait, true
	case look && !whole:
		return wait, true
	case typ == wire.Query && look:
		return s.queryCursors(message, before)
	case typ == wire.FunctionCall && look:
		return wait, s.moveCursors("", s.cache.takeCursors())
	case typ == wire.Query || typ == wire.FunctionCall:
		// Too large to be held back: an error is one more, ahead of its own.
		if b := s.moves(nil, s.cache.takeCursors()); b != nil {
			s.own(replySync)
			s.toServer.add(appendEmpty(b, wire.Sync))
		}
	default:
		// An error is one of the batch's, as if its first message had it.
		s.toServer.add(s.moves(nil, s.cache.takeCursors()))
	}
	return relay, false
}

// queryCursors looks at a Query.
func (s *session) queryCursors(message []byte, before *[]byte) (do action, done bool) {
	text := queryText(message)
	var list []engine.CursorCommand
	if text != nil && s.encodingKnown(text) && s.status == 'T' {
		list = engine.CursorCommands(string(text))
	}
	if len(list) == 0 {
		return wait, s.moveCursors(string(text), s.cache.takeCursors())
	}
	if list[0].Fetch {
		return s.fetchCursor(string(text), list[0], before)
	}
	for _, command := range list {
		switch {
		case command.Close && command.Name != "":
			s.cache.forgetCursor(command.Name)
		case command.Commit:
			// Those WITH HOLD go on.
			held := s.cache.takeCursors()
			for name, c := range held {
				if !c.hold {
					c.free()
					delete(held, name)
				}
			}
			return wait, s.moveCursors(string(text), held)
		default:
			s.cache.forgetCursors()
		}
	}
	return relay, false
}

// fetchCursor answers a FETCH, if the cursor is one to be answered here.
func (s *session) fetchCursor(sql string, command engine.CursorCommand, before *[]byte) (do action, done bool) {
	c := s.cache.cursors[command.Name]
	if c == nil || c.settings != s.settings {
		return wait, s.moveCursors(sql, s.cache.takeCursors())
	}
	x := &localExecution{simple: true, cursor: c, sql: sql, max: int32(command.Rows), started: time.Now()}
	if c.answer != nil {
		x.answer, c.answer.busy = c.answer, true
		s.local = x
		s.stir(c, before)
		s.send(c.head)
		return swallow, true
	}
	delete(s.cache.cursors, c.name) // until it is answered
	x.decision = c.decision
	if reason := s.gateBarred(nil); reason != "" {
		return s.forwardQuery(c.decision, reason), true
	}
	s.local = x
	*before = s.gateQuery(*before)
	return swallow, true
}

// stirEvery is how long a client may FETCH without a message to the server, a small part of any
// idle_in_transaction_session_timeout.
const stirEvery = 250 * time.Millisecond

// stir has the server know that its client is not idle, which only FETCHes rows that are here: it would end the session.
func (s *session) stir(c *cursor, before *[]byte) {
	if now := time.Now(); now.Sub(c.stirred) >= stirEvery {
		c.stirred = now
		s.own(replySync)
		*before = appendEmpty(*before, wire.Sync)
	}
}

// computeCursor is compute for the first FETCH from a cursor. notices are for the client, before the rows.
func (s *session) computeCursor(g *gateRun, notices []byte) {
	c := s.local.cursor
	switch snapshot := engine.GateSnapshot(g.answer.Rows); {
	case s.settings != c.settings:
		s.forward(plan.ReasonSettings)
	case snapshot == "" || snapshot != c.snapshot:
		s.forward(plan.ReasonStale)
	default:
		c.head = bytes.Clone(g.head)
		s.compute(g, g.fields, nil, append(notices, g.head...))
	}
}

// answerCursor takes the cursor over: its rows are computed.
func (s *session) answerCursor(c *cursor, a *answer) {
	c.answer, c.stirred = a, time.Now()
	s.cache.addCursor(c)
}

// moves brings the server's cursors to where the client's are; nil where they are there. They are not
// answered here any more.
func (s *session) moves(b []byte, list map[string]*cursor) []byte {
	for _, c := range list {
		switch {
		case c.rows != nil && c.answer != nil && (c.answer.next > 0 || c.ended) && !(c.scrolls && c.atEnd()):
			b = s.declareAnew(b, c)
		case c.answer != nil:
			b = s.moveForward(b, c, c.answer.next)
		}
		c.free()
	}
	return b
}

// moveForward has the server's cursor move by n rows, or behind the last.
func (s *session) moveForward(b []byte, c *cursor, n int) []byte {
	how := strconv.Itoa(n)
	if c.ended {
		how = "ALL"
	} else if n == 0 {
		return b
	}
	return s.command(b, "MOVE FORWARD "+how+" IN "+quoteName(c.name))
}

// atEnd reports whether the client has had all rows.
func (c *cursor) atEnd() bool { return c.ended || c.answer.next == c.answer.rows }

// declareAnew has the server declare a cursor over the rows that it has from here, as parameters, and
// brings it to where the client's is. It reads forwards only where the server's own would.
func (s *session) declareAnew(b []byte, c *cursor) []byte {
	batch, next := c.answer.batch, c.answer.next
	b = s.command(b, "CLOSE "+quoteName(c.name))
	var columns [][]byte
	if c.atEnd() {
		// Its rows are gone, and nobody asks for them, but for whether there were any.
		next = min(next, 1)
		columns = wire.NullArrays(arrayColumns(c.rows), next)
	} else {
		var err error
		if columns, err = wire.ColumnArrays(batch, arrayColumns(c.rows), s.settings, engine.CursorBytes); err != nil {
			return b // what comes finds no cursor, rather than one with other rows
		}
	}
	option := ""
	if !c.scrolls || c.decision.Cursor().Forward {
		option = " NO SCROLL"
	}
	b = s.commandOver(b, c.declaration(option)+c.rows.SQL, c.rows.Arrays(), columns)
	return s.moveForward(b, c, next)
}

// declaration is a DECLARE of the cursor, up to its query.
func (c *cursor) declaration(option string) string {
	sql := "DECLARE " + quoteName(c.name) + option + " CURSOR"
	if c.hold {
		sql += " WITH HOLD"
	}
	return sql + " FOR "
}

func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// moveCursors is moves before a Query, or a FunctionCall where sql is "": it is to be given again then, if
// the result is true. An error is its answer.
func (s *session) moveCursors(sql string, list map[string]*cursor) bool {
	b := s.moves(nil, list)
	if b == nil {
		return false
	}
	s.local = &localExecution{simple: true, sql: sql, started: time.Now(), stage: &moving{}}
	s.own(replySync)
	s.toServer.add(appendEmpty(b, wire.Sync))
	return true
}

// moving is the stage of a message while the server's cursors are brought to where the client's are.
type moving struct {
	passive
	over bool // the client has seen an error; ReadyForQuery follows
}

func (m *moving) failed(s *session, _ reply, body []byte) action {
	m.over = true
	return s.relayOwn(body)
}

func (m *moving) ready(s *session, _ reply) action {
	switch {
	case m.over:
		s.answered = true
		return s.queryOver()
	case s.local.cancelled && s.local.sql != "":
		s.answered = true
		s.cancelOnServer(nil)
	default:
		waits := s.queue.at // the message has yet to be dealt with
		s.finish()
		s.queue.at = waits
	}
	return swallow
}

// free lets its rows go, unless a local execution is at them, which does that when it ends.
func (c *cursor) free() {
	if c.answer != nil && !c.answer.busy {
		c.answer.free()
	}
}

func (c *statementCache) addCursor(cur *cursor) {
	if c.cursors == nil {
		c.cursors = map[string]*cursor{}
	}
	c.cursors[cur.name] = cur
}

// takeCursors returns the cursors, and forgets them.
func (c *statementCache) takeCursors() map[string]*cursor {
	list := c.cursors
	c.cursors = nil
	return list
}

func (c *statementCache) forgetCursor(name string) {
	if cur := c.cursors[name]; cur != nil {
		delete(c.cursors, name)
		cur.free()
	}
}

func (c *statementCache) forgetCursors() {
	for _, cur := range c.takeCursors() {
		cur.free()
	}
}
