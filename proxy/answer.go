package proxy

import (
	"strconv"

	"pgaccel/plan"
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

	rows int
	next int  // the next row to be sent
	busy bool // a step sends it
}

// free lets the rows go.
func (a *answer) free() {
	a.batch.Release()
	a.batch, a.encoder = nil, nil
}

// answer encodes a result and begins to send it.
func (s *session) answer(batch *vector.Batch) {
	t := s.step
	oids := make([]uint32, len(t.fields))
	for i := range oids {
		oids[i] = t.fields[i].TypeOID
	}
	var formats []int16
	if t.portal != nil {
		formats = t.portal.results
	}
	a := &answer{batch: batch, oids: oids, formats: formats, reported: s.settings, rows: batch.Rows}
	if err := a.encode(s.settings); err != nil {
		batch.Release()
		s.release(plan.ReasonSettings)
		return
	}
	if p := t.portal; p != nil {
		p.answer = a
		if p.name != "" {
			a.busy, t.standsIn = true, p
			s.toServer.add(s.standIn(nil, p))
			return
		}
	}
	s.send(a)
}

// encode has the rows to come written as a session with such settings wants them.
func (a *answer) encode(settings wire.TextSettings) (err error) {
	if a.encoder == nil || a.settings != settings {
		a.encoder, err = wire.NewRowEncoder(a.batch.Columns, a.oids, a.formats, settings)
		a.settings = settings
	}
	return err
}

// writingSettings ask for the settings that decide how values are written, without a
// function that somebody may have revoked. The server reports a change only with
// ReadyForQuery, and not that of extra_float_digits.
var writingSettings = [...]string{"SHOW TimeZone", "SHOW DateStyle", "SHOW client_encoding", "SHOW extra_float_digits"}

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
	now.TimeZone, now.DateStyle, now.ClientEncoding = value(0), value(1), value(2)
	now.ExtraFloatDigits, _ = strconv.Atoi(value(3)) // 0, if it were none, is refused
	return now
}

// readOn sends more rows of a portal. Settings that the client has changed since the last
// ones hold from here on, as in Postgres, which runs the output functions row by row. Those
// that pgaccel cannot write under end the statement: another snapshot's rows may be others,
// so that the server cannot go on with it.
func (s *session) readOn() {
	t := s.step
	a := t.portal.answer
	a.reported = s.settings
	if a.batch != nil {
		if err := a.encode(s.settingsOf(t.gate.Rows)); err != nil {
			t.cause = wire.AppendError(nil, wire.ErrorFields{Severity: "ERROR", Code: "0A000",
				Message: "pgaccel cannot go on with portal \"" + t.portal.name + "\": " + err.Error(),
				Hint:    "Set it back, or read the portal to its end before it is changed."})
			s.cancelOnServer()
			return
		}
	}
	s.send(a)
}

// send begins to send rows.
func (s *session) send(a *answer) {
	t := s.step
	a.busy = true
	t.sending, t.answer, t.first, t.end = true, a, a.next, a.rows
	if t.max > 0 {
		t.end = min(a.rows, a.next+int(t.max))
	}
}

// sending says that more has something to put out. Nothing follows a FATAL error of the
// server's.
func (s *session) sending() bool { return s.step != nil && s.step.sending && !s.ending }

// more appends the next messages of an answer to dst, at least one and about
// moreBytes, for the client.
func (s *session) more(dst []byte) []byte {
	t := s.step
	if t.cancelled {
		t.sending = false
		s.cancelOnServer()
		return dst
	}
	if !t.headSent {
		t.headSent = true
		dst = append(append(dst, t.notices...), t.head...)
	}
	for t.answer.next < t.end && len(dst) < moreBytes {
		dst = t.answer.encoder.Append(dst, t.answer.next)
		t.answer.next++
	}
	if t.answer.next < t.end {
		return dst
	}
	n := t.end - t.first
	if t.max > 0 && n == int(t.max) {
		dst = appendEmpty(dst, wire.PortalSuspended)
	} else {
		dst = appendSelectTag(dst, n)
	}
	if t.simple {
		dst = appendReady(dst, s.status)
	} else {
		t.portal.serial = s.commands
	}
	if t.answer.next == t.answer.rows {
		t.answer.free() // a portal at its end keeps no rows
	}
	s.tell(true)
	s.finish()
	return dst
}

// moreBytes is the size of a piece of an answer.
const moreBytes = 32 << 10

// letGo frees the rows of a step that ends, unless its portal may go on with them.
func (t *step) letGo(k *known) {
	a := t.answer
	if t.portal != nil {
		a = t.portal.answer
	}
	if a == nil {
		return
	}
	if a.busy = false; t.portal == nil || k.portals[t.portal.name] != t.portal {
		a.free()
	}
}
