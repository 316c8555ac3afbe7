package proxy

import (
	"strconv"
	"time"

	"pgaccel/engine"
	"pgaccel/plan"
	"pgaccel/sqltype"
	"pgaccel/vector"
	"pgaccel/wire"
)

// answer is a computed result on its way to the client.
type answer struct {
	batch   *vector.Batch // what encoder reads; nil once it was let go
	encoder *wire.RowEncoder
	// What encoder was made for: a portal may be read on under other settings.
	oids     []uint32
	formats  []int16
	settings wire.TextSettings
	// reported is what the session knew of its settings when the server said that settings,
	// some of which it does not report, are those of now.
	reported wire.TextSettings
	copy     *wire.CopyWriter // of a COPY: what writes the rows; else nil
	row      []byte           // what it writes
	explain  bool             // of an EXPLAIN

	rows int
	next int  // the next row to be sent
	busy bool // a local execution is at it
}

// free lets the rows go.
func (a *answer) free() {
	a.batch.Release()
	a.batch, a.encoder = nil, nil
}

// answer encodes a result and begins to send it, behind head.
func (s *session) answer(g *gateRun, batch *vector.Batch, fields []engine.Field, head []byte) {
	x := s.local
	if x.decision.Finish() != nil && x.cursor != nil {
		s.finishCursor(g, batch, fields)
		return
	}
	if x.decision.Finish() != nil {
		s.finishOn(g, batch, fields, head)
		return
	}
	if x.explain != nil {
		fields = []engine.Field{{TypeOID: sqltype.OIDText}} // as json and xml are written, too
	}
	oids := make([]uint32, len(fields))
	for i := range oids {
		oids[i] = fields[i].TypeOID
	}
	var formats []int16
	if x.portal != nil {
		formats = x.portal.results
	}
	a := &answer{batch: batch, oids: oids, formats: formats, reported: s.settings, rows: batch.Rows, explain: x.explain != nil}
	if x.copy != nil {
		a.copy, a.formats = x.writer, x.writer.Formats()
	}
	if err := a.encode(s.settings); err != nil {
		batch.Release()
		s.forward(plan.ReasonSettings)
		return
	}
	x.answer, a.busy = a, true
	if x.cursor != nil {
		s.answerCursor(x.cursor, a)
	}
	if p := x.portal; p != nil && x.copy != nil {
		p.copied = true
	} else if p != nil {
		p.answer = a
		if p.name != "" {
			s.toServer.add(s.replacePortal(nil, p, a))
			return
		}
	}
	s.send(head)
}

// encode has the rows to come written as a session with such settings wants them. Rows that come
// in pieces are all writable where this is no error.
func (a *answer) encode(settings wire.TextSettings) (err error) {
	if a.encoder != nil && a.settings == settings {
		return nil
	}
	a.settings = settings
	if a.batch.Worst != nil {
		if _, err := wire.NewRowEncoder(a.batch.Worst, a.oids, a.formats, settings); err != nil {
			return err
		}
	}
	a.encoder, err = wire.NewRowEncoder(a.batch.Columns, a.oids, a.formats, settings)
	return err
}

// append appends the next row, which is loaded.
func (a *answer) append(dst []byte) []byte {
	row := a.next - a.batch.First
	a.next++
	if a.copy == nil {
		return a.encoder.Append(dst, row)
	}
	a.row = a.encoder.Append(a.row[:0], row)
	return a.copy.AppendRow(dst, a.row)
}

// load brings the next row to where the encoder reads it.
func (a *answer) load() error {
	fresh, err := a.batch.Load(a.next)
	if fresh {
		a.encoder = nil
		err = a.encode(a.settings)
	}
	return err
}

// writingSettings ask for the settings that decide how values are written, without a
// function that somebody may have revoked. The server reports a change only with
// ReadyForQuery, and not those of extra_float_digits, bytea_output and lc_monetary.
var writingSettings = [...]string{"SHOW TimeZone", "SHOW DateStyle", "SHOW IntervalStyle", "SHOW client_encoding", "SHOW extra_float_digits", "SHOW bytea_output", "SHOW lc_monetary"}

// settingsOf reads the answers to writingSettings; without answers, nothing has changed.
func (s *session) settingsOf(rows [][]*string) wire.TextSettings {
	now := s.settings
	if len(rows) != len(writingSettings) {
		return now
	}
	value := func(i int) string {
		if len(rows[i]) != 1 || rows[i][0] == nil {
			return ""
		}
		return *rows[i][0]
	}
	now.TimeZone, now.DateStyle, now.IntervalStyle, now.ClientEncoding = value(0), value(1), value(2), value(3)
	now.ExtraFloatDigits, _ = strconv.Atoi(value(4)) // 0, if it were none, is refused
	now.ByteaOutput, now.Monetary = value(5), value(6)
	return now
}

// sending is the stage of a local execution whose rows go to the client.
type sending struct {
	passive
	head  []byte    // for the client, before the rows
	first int       // row at which this statement begins
	end   int       // and before which it ends
	began time.Time // if there is a span
}

// send begins to send the rows of the answer, behind head.
func (s *session) send(head []byte) {
	x := s.local
	st := &sending{head: head, first: x.answer.next, end: x.answer.rows, began: s.tick()}
	if x.max > 0 {
		st.end = min(st.end, st.first+int(x.max))
	}
	x.stage = st
	s.info.heldResult.Store(s.heldBytes())
}

// sending says that more has something to put out. Nothing follows a FATAL error of the
// server's.
func (s *session) sending() bool {
	if s.local == nil || s.ending {
		return false
	}
	_, ok := s.local.stage.(*sending)
	return ok
}

// more appends the next messages of an answer to dst, at least one and about
// moreBytes, for the client. The local execution is sending. The driver says when it has written them (written).
func (s *session) more(dst []byte) []byte {
	x := s.local
	if x.cancelled {
		s.cancelOnServer(nil)
		return dst
	}
	st, a := x.stage.(*sending), x.answer
	dst = append(dst, st.head...)
	st.head = nil
	for a.next < st.end && len(dst) < moreBytes {
		if err := a.load(); err != nil {
			s.cancelOnServer(wire.AppendError(nil, wire.ErrorFields{Severity: "ERROR", Code: ioError, Message: "pgaccel cannot go on with the result: " + err.Error()}))
			return dst
		}
		dst = a.append(dst)
	}
	if a.next < st.end {
		return dst
	}
	n := st.end - st.first
	command := "SELECT"
	if a.copy != nil {
		command = "COPY"
		dst = a.copy.AppendEnd(dst, n)
	} else if x.cursor != nil {
		command = "FETCH"
		x.cursor.ended = x.cursor.ended || x.max == 0 || n < int(x.max)
		dst = appendTag(dst, "FETCH ", n)
	} else if x.max > 0 && n == int(x.max) {
		command = ""
		dst = appendEmpty(dst, wire.PortalSuspended)
	} else if a.explain {
		command = explainTag
		dst = appendPlainTag(dst, explainTag)
	} else {
		dst = appendTag(dst, "SELECT ", n)
	}
	if x.simple {
		dst = appendReady(dst, s.status)
	} else {
		x.portal.serial = s.commands
	}
	if a.next == a.rows {
		a.free() // a portal at its end keeps no rows
	}
	s.answeredHere(command, n)
	s.tell(true)
	if o := s.queue.at; o != nil && !st.began.IsZero() {
		s.unwritten, s.queue.at = unwritten{o, st.began}, nil
	}
	s.finish()
	s.show()
	return dst
}

// moreBytes is the size of a piece of an answer.
const moreBytes = 32 << 10

// letGo frees the rows of a local execution that ends, unless its portal may go on with them.
func (x *localExecution) letGo(c *statementCache) {
	a := x.answer
	if a == nil {
		return
	}
	a.busy = false
	if x.cursor != nil && c.cursors[x.cursor.name] == x.cursor {
		return // its rows go on with it
	}
	if x.portal == nil || x.copy != nil || c.portals[x.portal.name] != x.portal {
		a.free()
	}
}
