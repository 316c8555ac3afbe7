package proxy

import (
	"slices"
	"time"

	"pgaccel/engine"
	"pgaccel/plan"
	"pgaccel/vector"
	"pgaccel/wire"
)

// A cursor over a SELECT of which a part is refused is declared on the server as any other. Of that it has run nothing when the first
// FETCH comes, for which the core is computed here. Then a cursor over the rest takes its place, which the server goes on with:
//
//	client                FETCH
//	computing             the rows of the core
//	redeclaring           Parse Bind Describe of the rest, is_scrollable of the cursor, Sync
//	                      CLOSE, DECLARE, Sync
//	client sees           what its FETCH, which is relayed, brings
//
// An error of the first batch, which is inside of a savepoint, forwards the FETCH. Behind that the second one does what has been done
// already. Between DECLARE and FETCH the session has done nothing else (cursor.go), so that the new cursor is of the same subtransaction.

// redeclaring is the stage of a FETCH while the cursor over the rest takes the place of the one that there is.
type redeclaring struct {
	passive
	gate       *gateRun // that it has passed
	fields     []engine.Field
	columns    [][]byte // of the core
	unfit      bool     // the rest's result is another than the cursor's
	scrollable string   // what the server says of the cursor that there is; "" for none
	closed     bool     // the second batch is under way
	ended      batchError
}

// scrollableSQL asks whether a cursor can be read backwards, which depends on its plan where DECLARE does not say.
const scrollableSQL = "SELECT is_scrollable::pg_catalog.text FROM pg_catalog.pg_cursors WHERE name OPERATOR(pg_catalog.=) $1"

// finishCursor has a cursor over the rest declared.
func (s *session) finishCursor(g *gateRun, batch *vector.Batch, fields []engine.Field) {
	f := s.local.decision.Finish()
	columns, err := wire.ColumnArrays(batch, arrayColumns(f), s.settings, engine.FinishBytes)
	batch.Release()
	if err != nil || f.Params > 0 || s.block != 'T' {
		s.forward(plan.ReasonSettings)
		return
	}
	r := &redeclaring{gate: &gateRun{form: g.form, answer: g.answer, guarded: true}, fields: fields, columns: columns}
	s.local.stage = r
	b := s.command(nil, savepointSQL)
	b = s.bindRest(b, f.SQL, f.Arrays(), columns, make([]bool, len(columns)), []int16{wire.FormatBinary}, nil)
	b = s.closeRest(b)
	b = s.commandOver(b, scrollableSQL, []uint32{oidText}, [][]byte{[]byte(s.local.cursor.name)})
	b = s.command(b, releaseSQL)
	s.own(replySync)
	s.toServer.add(appendEmpty(b, wire.Sync))
}

func (r *redeclaring) row(body []byte) {
	if row, ok := readRow(body); ok && len(row) == 1 && row[0] != nil {
		r.scrollable = *row[0]
	}
}

// described compares the rest's columns with the cursor's: the client is told of the former.
func (r *redeclaring) described(s *session, typ byte, message []byte) {
	fields, ok := readFields(message[wire.HeaderLen:])
	r.unfit = typ != wire.RowDescription || !ok || !slices.Equal(fields, r.fields)
}

func (r *redeclaring) failed(s *session, k reply, body []byte) action {
	if r.closed || string(wire.ErrorField(body, 'C')) == queryCanceled {
		r.ended = shownError
		return s.relayOwn(body)
	}
	r.ended = hiddenError
	return swallow
}

func (r *redeclaring) ready(s *session, k reply) action {
	x := s.local
	switch {
	case k&replyOwn == 0:
		return relay
	case r.ended == shownError:
		return s.queryOver()
	case r.ended == hiddenError:
		s.ungateQuery(r.gate, plan.ReasonEvaluation)
	case x.cancelled:
		s.cancelOnServer(nil)
	case r.closed:
		s.answeredHere("", 0)
		s.relayQuery()
		s.toServer.add(appendQuery(nil, x.sql))
		x.decision.Finished(time.Since(x.started), 0) // how many rows there are shows later
		s.tell(true)
		s.finish()
	case r.unfit || r.scrollable == "":
		s.forward(plan.ReasonDescription)
	default:
		r.closed = true
		s.toServer.add(r.redeclare(s))
	}
	return swallow
}

// redeclare puts a cursor over the rest in the place of the one that there is.
func (r *redeclaring) redeclare(s *session) []byte {
	c, f := s.local.cursor, s.local.decision.Finish()
	option := " NO SCROLL"
	if r.scrollable == "true" {
		option = " SCROLL"
	}
	b := s.command(nil, "CLOSE "+quoteName(c.name))
	b = s.commandOver(b, c.declaration(option)+f.SQL, f.Arrays(), r.columns)
	s.own(replySync)
	return appendEmpty(b, wire.Sync)
}
