package proxy

import (
	"bytes"
	"slices"
	"time"

	"pgaccel/engine"
	"pgaccel/plan"
	"pgaccel/vector"
	"pgaccel/wire"
)

// A statement of which a part is refused is computed here up to that, and the server runs the rest over the
// rows, which are parameters (engine.Finish). Until it has ended, or has given many rows, nothing has been sent to the client,
// and the statement is forwarded whatever goes wrong:
//
//	client        Query                              |  Execute
//	computing     the rows of the core               |  the same
//	finishing     Parse Bind Describe Execute Sync   |  the same, with Flush
//	client sees   T of its own text, D ... C, Z      |  D ... C
//
// Where the rest reads tables, its snapshot must see of the copied ones what the gate's does: behind it the server is asked for one more,
// and if that is the same, so are all between. If it is not, the gate is run again, and the engine says whether they are unchanged. Nothing
// is sent to the client before that. Of a COPY the rest is that of the SELECT of its rows, all of which are held, too: they are
// written otherwise.
//
// A statement that writes the rows of a SELECT (CREATE TABLE AS, INSERT) is one of these whose rest writes them.
//
// In a transaction block that runs inside of a savepoint, as the gate does.

// heldRows are the bytes of rows that are held back until the rest has ended.
const heldRows = 256 << 10

// maxHeld bounds the rows of a rest of which all are held: so many are in heldRows at the most.
const maxHeld = heldRows / (wire.HeaderLen + 2)

// behindSQL asks for the snapshot, as the gate does, and which tables the rest has read: they are locked until the transaction ends.
func behindSQL(f *engine.Finish) string {
	return "SELECT pg_catalog.pg_current_snapshot()::pg_catalog.text, " + f.Others
}

// finishName is the name of the rest's statement and portal.
const finishName = "pgaccel_finish"

// finishing is the stage of a local execution whose rest the server runs.
type finishing struct {
	gate   *gateRun       // that it has passed
	fields []engine.Field // of the statement
	head   []byte         // for the client, before the rows
	tag    []byte         // CommandComplete
	begun  bool           // the client has had a row
	rows   []byte         // that are held until then
	// notices are for the client behind head, unless the statement is forwarded.
	notices []byte
	unfit   bool // the rest's result is another than the statement's
	ended   batchError
	reads   bool     // the rest reads tables
	held    bool     // all rows are held
	large   bool     // they are more than that
	behind  string   // the snapshot behind it
	others  string   // and which tables it has read
	second  *gateRun // once the gate is run again
}

// arrayColumns are the forms of the arrays that f reads.
func arrayColumns(f *engine.Finish) []wire.ArrayColumn {
	form := make([]wire.ArrayColumn, len(f.Columns))
	for i, c := range f.Columns {
		form[i] = wire.ArrayColumn{OID: c.OID, Element: c.Element, Format: wire.FormatBinary}
		if c.Text {
			form[i].Format = wire.FormatText
		}
	}
	return form
}

// finish has the server run the rest of the statement over the batch.
func (s *session) finishOn(g *gateRun, batch *vector.Batch, fields []engine.Field, head []byte) {
	x, f := s.local, s.local.decision.Finish()
	columns, err := wire.ColumnArrays(batch, arrayColumns(f), s.settings, engine.FinishBytes)
	batch.Release()
	types := x.paramTypes()
	if err != nil || len(types) != f.Params {
		s.forward(plan.ReasonSettings)
		return
	}
	free := gateRun{form: g.form, answer: g.answer, free: g.free, guarded: s.block == 'T'}
	held := f.Reads || x.copy != nil
	x.stage = &finishing{gate: &free, fields: fields, head: head, reads: f.Reads, held: held}
	values, null, formats := make([][]byte, 0, len(types)+len(columns)), make([]bool, len(types)+len(columns)), []int16{}
	var results []int16
	for i := range types {
		values, formats = append(values, x.portal.values[i]), append(formats, x.portal.format(i))
		null[i] = x.portal.values[i] == nil
	}
	if x.portal != nil {
		results = x.portal.results
	}
	if x.copy != nil {
		results = x.writer.Formats()
	}
	for _, c := range columns {
		values, formats = append(values, c), append(formats, wire.FormatBinary)
	}
	var b []byte
	if free.guarded {
		b = s.command(b, savepointSQL)
	}
	b = s.bindRest(b, f.SQL, slices.Concat(types, f.Arrays()), values, null, formats, results)
	limit := int32(0)
	if held {
		limit = maxHeld
	}
	b = appendExecute(b, finishName, limit)
	s.queue.pushRef(replyExecute|replyOwn, ref{rest: true})
	b = s.closeRest(b)
	if f.Reads {
		b = s.command(b, behindSQL(f))
	}
	if free.guarded {
		b = s.command(b, releaseSQL)
	}
	if x.simple {
		s.own(replySync)
		s.toServer.add(appendEmpty(b, wire.Sync))
		return
	}
	if x.writes() {
		s.queue.sent++ // the batch is not undone any more
	}
	s.toServer.add(appendEmpty(b, wire.Flush))
}

// bindRest parses, binds and describes the rest of a statement.
func (s *session) bindRest(b []byte, sql string, types []uint32, values [][]byte, null []bool, formats, results []int16) []byte {
	b = s.closeRest(b) // where the last attempt failed
	b = appendParse(b, finishName, sql, types)
	b = appendBindAs(b, finishName, finishName, values, null, formats, results)
	b = appendNamed(b, wire.Describe, 'P', finishName)
	for _, k := range []reply{replyParse, replyBind, replyPortal} {
		s.own(k)
	}
	return b
}

// closeRest closes its portal and statement.
func (s *session) closeRest(b []byte) []byte {
	b = appendNamed(b, wire.Close, 'P', finishName)
	b = appendNamed(b, wire.Close, 'S', finishName)
	s.own(replyClose)
	s.own(replyClose)
	return b
}

// finishing returns the stage in which the server runs the rest; nil in any other.
func (s *session) finishing() *finishing {
	if s.local == nil {
		return nil
	}
	f, _ := s.local.stage.(*finishing)
	return f
}

// described compares the rest's columns with the statement's.
func (f *finishing) described(s *session, typ byte, message []byte) {
	if f.second != nil {
		f.second.described(s, typ, message)
		return
	}
	if s.local.writes() {
		f.unfit = typ != wire.NoData
		return
	}
	fields, ok := readFields(message[wire.HeaderLen:])
	f.unfit = typ != wire.RowDescription || !ok || !slices.EqualFunc(fields, f.fields, func(a, b engine.Field) bool {
		// Of a Query the server describes what it has planned, which may have another modifier than what it has parsed.
		return a.TypeOID == b.TypeOID && (!s.local.simple || a.Typmod == b.Typmod)
	})
}

// row takes that of behindSQL, or one of the gate's.
func (f *finishing) row(body []byte) {
	if f.second != nil {
		f.second.row(body)
		return
	}
	if row, ok := readRow(body); ok && len(row) == 2 && row[0] != nil && row[1] != nil {
		f.behind, f.others = *row[0], *row[1]
	}
}

// rowCame takes a row, of which message has come. The first are held: where an error is behind them, PostgreSQL may have it before any row.
func (f *finishing) rowCame(s *session, message []byte, total int) action {
	switch {
	case f.held && len(f.rows)+total > heldRows:
		f.large = true
		return swallow
	case f.unfit:
		return swallow
	case f.begun:
		return relay
	case len(f.rows)+total > heldRows:
		s.ahead, f.begun = slices.Concat(f.head, f.notices, f.rows), true
		f.rows = nil
		return relay
	case len(message) < total:
		return wait
	}
	if w := s.local.writer; w != nil {
		f.rows = w.AppendRow(f.rows, message)
	} else {
		f.rows = append(f.rows, message...)
	}
	return swallow
}

func (f *finishing) failed(s *session, k reply, body []byte) action {
	x := s.local
	switch {
	case f.begun, s.endsQuery(string(wire.ErrorField(body, 'C'))) && !f.gate.guarded, !f.gate.bearable(),
		string(wire.ErrorField(body, 'C')) == queryCanceled,
		x.writes() && (k&replyKind == replyExecute || k&replyKind == replySync): // what it has taken from sequences shows
		do := relay
		if x.simple {
			f.ended = shownError
			do = s.relayOwn(body)
		} else {
			do = s.executeFailed(k, body)
		}
		if !f.begun {
			s.ahead = slices.Concat(f.notices, s.ahead)
		}
		return do
	case x.simple:
		f.ended = hiddenError
	default:
		s.skipping = false
		s.own(replySync)
		s.toServer.add(s.undoGate(appendEmpty(nil, wire.Sync), f.gate))
		s.forward(plan.ReasonEvaluation)
	}
	return swallow
}

func (f *finishing) ready(s *session, k reply) action {
	if k&replyOwn == 0 {
		return relay
	}
	switch {
	case f.ended == shownError:
		return s.queryOver()
	case f.ended == hiddenError:
		s.ungateQuery(f.gate, plan.ReasonEvaluation)
		return swallow
	case f.failure() != "":
		s.forward(f.failure())
		return swallow
	}
	if !f.settled() {
		f.runSecondGate(s)
		return swallow
	}
	s.ahead = slices.Concat(s.ahead, f.end(s))
	return relay
}

// failure says why the statement is forwarded nevertheless.
func (f *finishing) failure() plan.Reason {
	switch {
	case f.unfit || f.tag == nil:
		return plan.ReasonDescription
	case f.large || f.tag[0] == wire.PortalSuspended:
		return plan.ReasonMemory
	case f.reads && f.behind != engine.GateSnapshot(f.gate.answer.Rows) && f.others != f.read():
		return plan.ReasonStale
	}
	return ""
}

func (f *finishing) answered(s *session) {
	if reason := f.failure(); reason != "" {
		s.forward(reason)
		return
	}
	if !f.settled() {
		f.runSecondGate(s)
		return
	}
	s.ahead = slices.Concat(s.ahead, f.end(s))
}

// end ends the statement, and returns what is for the client.
func (f *finishing) end(s *session) (out []byte) {
	if p := s.local.portal; p != nil {
		f.leave(s, p)
	}
	if !f.begun {
		out = slices.Concat(f.head, f.notices, f.rows)
	}
	command, rows := splitTag(bytes.TrimSuffix(f.tag[wire.HeaderLen:], []byte{0}))
	if w := s.local.writer; w != nil {
		out = w.AppendEnd(out, rows)
	} else {
		out = append(out, f.tag...)
	}
	if s.local.writes() {
		s.commandEnded(f.tag[wire.HeaderLen:])
	}
	s.local.decision.Finished(time.Since(s.local.started), rows)
	s.answeredHere(command, rows)
	s.tell(true)
	s.finish()
	return out
}

// leave leaves the portal as one that has been read to its end.
func (f *finishing) leave(s *session, p *portal) {
	p.serial = s.commands
	if p.copied = s.local.copy != nil || s.local.writes(); !p.copied {
		p.answer = &answer{reported: s.settings, batch: &vector.Batch{}}
		p.answer.free()
	}
}
