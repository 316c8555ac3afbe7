package proxy

import (
	"encoding/binary"
	"fmt"
	"slices"

	"pgaccel/engine"
	"pgaccel/sqltype"
	"pgaccel/wire"
)

// A statement over the schema pgaccel has a parameter more than the client knows of,
// which takes the rows (engine.View). Parse sends the rewritten text, ParameterDescription
// is relayed without the last type, and at each Bind the server is first asked what the
// session's role may see:
//
//	client   [Parse] Bind              |  Query
//	asking   rights Flush              |  the same
//	then     Bind with the rows        |  Parse, Bind with the rows, Describe, Execute, Sync
//
// While it is asked, the client's bytes wait. An error in answer to that is the client's:
// what it asked for cannot be had.
//
// Which names stand for such statements has to be known for sure, since their Bind is
// another. A session that has prepared statements by SQL, maybe one under a name that it
// has deallocated, is asked that, too. Where a function has done so, Bind fails with 08P01.

// asking is a statement over the schema pgaccel whose role's rights are asked for.
type asking struct {
	view   *engine.View
	rows   engine.ViewRows
	bind   []byte // the client's message; nil for a Query
	name   string // the statement that it names
	named  bool   // and whether that is view is asked
	answer [][]*string

	cancelled  bool // the client has cancelled, which may have found the server idle
	cancelling bool // the server is made to say so
}

// viewChange is what a message did to a name, to be undone where the server ignored it.
type viewChange struct {
	name   string
	before *engine.View
}

// stillSQL asks whether a name, the value of parameter n, stands for a text, that of the next one.
func stillSQL(n int) string {
	return fmt.Sprintf(`, EXISTS (SELECT FROM pg_catalog.pg_prepared_statements s WHERE s.name OPERATOR(pg_catalog.=) $%d AND s.statement OPERATOR(pg_catalog.=) $%d)`, n, n+1)
}

// rightsName is the name under which the rights are asked for.
const rightsName = "pgaccel_rights"

// setView notes what a name stands for from now on: v, or no statement over the schema
// pgaccel where v is nil. It returns nil where nothing has changed, whatever becomes of the message.
func (s *session) setView(name string, v *engine.View) *viewChange {
	before := s.views[name]
	if before == v && (v == nil || name != "") {
		return nil
	}
	s.changes.batch, s.changes.any = s.sent, true
	s.putView(name, v)
	return &viewChange{name, before}
}

func (s *session) putView(name string, v *engine.View) {
	if v == nil {
		delete(s.views, name)
		return
	}
	if s.views == nil {
		s.views = map[string]*engine.View{}
	}
	s.views[name] = v
}

// undoViews takes changes back, which were made in this order.
func (s *session) undoViews(changes []*viewChange) {
	for _, c := range slices.Backward(changes) {
		s.putView(c.name, c.before)
	}
}

// pushView is queue.push for a message that changes what a name stands for.
func (s *session) pushView(k reply, c *viewChange) {
	if c == nil {
		s.queue.push(k)
		return
	}
	s.queue.pushRef(k, ref{view: c})
}

// unsettledViews reports whether what a name stands for hangs on an earlier batch, which
// the server has yet to answer. Then the client's bytes wait.
func (s *session) unsettledViews() bool {
	s.changes.waited = s.changes.any && s.changes.batch < s.sent && s.done <= s.changes.batch
	return s.changes.waited
}

// parseView sends a Parse of a statement over the schema pgaccel.
func (s *session) parseView(name string, v *engine.View, oids []uint32, before *[]byte) {
	s.cache.forgetStatement(name)
	s.pushView(replyParse, s.setView(name, v))
	types := make([]uint32, v.Parameter)
	copy(types, oids)
	types[v.Parameter-1] = sqltype.OIDText
	*before = appendParse(*before, name, v.SQL, types)
}

// largeParse notes a Parse too large to be looked at, of which message has come. It is
// false where that does not tell the name.
func (s *session) largeParse(message []byte) bool {
	var change *viewChange
	if len(s.views) > 0 {
		name, _, err := wire.CString(message[wire.HeaderLen:])
		if err != nil && len(message) < lookLimit/2 {
			return false
		}
		change = s.setView(string(name), nil)
	}
	s.pushView(replyParse, change)
	return true
}

// ask asks for the rights for a Bind of the named statement, or for a Query where bind
// is nil.
func (s *session) ask(v *engine.View, name string, bind, b []byte) []byte {
	a := &asking{view: v, bind: bind, name: name, named: s.prepares && name != ""}
	s.asking = a
	s.show() // the session itself may be among the rows
	a.rows = v.Ask()
	sql, params := a.rows.SQL, a.rows.Params
	if a.named {
		sql, params = sql+stillSQL(len(params)+1), append(slices.Clone(params), name, v.SQL)
	}
	if bind == nil { // a Query gives up the unnamed statement, whatever becomes of it
		b = appendNamed(b, wire.Close, 'S', "")
		s.pushView(replyClose|replyOwn, s.setView("", nil))
	}
	b = appendNamed(b, wire.Close, 'S', rightsName) // where the last attempt failed
	b = appendParse(b, rightsName, sql, nil)
	b = appendBind(b, rightsName, rightsName, params)
	b = appendExecute(b, rightsName, 0)
	b = appendNamed(b, wire.Close, 'P', rightsName)
	b = appendNamed(b, wire.Close, 'S', rightsName)
	for _, k := range []reply{replyClose, replyParse, replyBind, replyExecute, replyClose, replyClose} {
		s.own(k)
	}
	return appendEmpty(b, wire.Flush)
}

// rightsRow takes the server's answer.
func (a *asking) rightsRow(body []byte) {
	if row, ok := readRow(body); ok && !a.cancelling {
		a.answer = append(a.answer, row)
	}
}

// askedRights sends the statement with the rows that the role may see.
func (s *session) askedRights() {
	a := s.asking
	if a.cancelled && !a.cancelling {
		a.cancelling = true
		s.toServer.add(s.cancelExtended(nil))
		return
	}
	s.asking = nil
	if s.prepares && a.name != "" && !a.named {
		s.toServer.add(s.ask(a.view, a.name, a.bind, nil)) // the session has done so just now
		return
	}
	if a.named && len(a.answer) == 1 && len(a.answer[0]) > 0 {
		row := a.answer[0]
		last := len(row) - 1
		a.answer[0] = row[:last]
		if row[last] != nil && *row[last] == "f" {
			s.queue.push(replyBind)
			s.toServer.add(a.bind)
			return
		}
	}
	value, err := a.rows.Value(a.answer)
	if err != nil {
		value = err.Error() // which is no JSON: the server says so
	}
	if a.bind != nil {
		s.queue.push(replyBind)
		s.toServer.add(bindMore(a.bind, a.view.Parameter-1, value))
		return
	}
	// A Query gives up the unnamed portal by itself.
	b := appendParse(nil, "", a.view.SQL, []uint32{sqltype.OIDText})
	b = appendBind(b, "", "", []string{value})
	b = appendNamed(b, wire.Describe, 'P', "")
	b = appendExecute(b, "", 0)
	b = appendNamed(b, wire.Close, 'P', "")
	b = appendNamed(b, wire.Close, 'S', "")
	s.own(replyParse)
	s.own(replyBind)
	s.queue.pushRef(replyPortal, ref{query: true})
	s.queue.push(replyExecute)
	s.own(replyClose)
	s.own(replyClose)
	s.toServer.add(s.endQuery(b))
}

// endQuery ends what stands for a Query.
func (s *session) endQuery(b []byte) []byte {
	s.queue.push(replySync)
	s.sent++
	s.inBatch, s.skipping = false, false
	s.beginBatch()
	return appendEmpty(b, wire.Sync)
}

// askFailed deals with an error after which the server ignores everything, in answer to
// the question for the rights (own) or to a message before it. The client sees it.
func (s *session) askFailed(own bool, code string) action {
	a := s.asking
	s.asking = nil
	if own && a.bind == nil {
		s.toServer.add(s.endQuery(nil))
	}
	if own && a.cancelling && code != queryCanceled {
		s.ahead = wire.AppendError(nil, canceledError)
		return swallow
	}
	return relay
}

// describedView relays a ParameterDescription without the parameter for the rows.
func (s *session) describedView(v *engine.View, body []byte) action {
	n := v.Parameter
	if len(body) != 2+4*n || int(binary.BigEndian.Uint16(body)) != n {
		return relay
	}
	b := binary.BigEndian.AppendUint16(open(nil, wire.ParameterDescription), uint16(n-1))
	s.ahead = seal(append(b, body[2:2+4*(n-1)]...), 0)
	return swallow
}

// bindMore returns a Bind with one value, in text format, behind its n values. One with
// another number of values, or that cannot be read, is returned as it is: the server
// refuses it.
func bindMore(message []byte, n int, value string) []byte {
	var p portal
	_, _, rest, ok := bindNames(message[wire.HeaderLen:])
	if !ok || !bindValues(&p, rest) || len(p.values) != n {
		return message
	}
	b := append([]byte(nil), message[:len(message)-len(rest)]...)
	shorts := func(list []int16) {
		b = binary.BigEndian.AppendUint16(b, uint16(len(list)))
		for _, v := range list {
			b = binary.BigEndian.AppendUint16(b, uint16(v))
		}
	}
	// One format is that of all values; a text's binary format is that text.
	if len(p.formats) > 1 {
		p.formats = append(p.formats, wire.FormatText)
	}
	shorts(p.formats)
	b = binary.BigEndian.AppendUint16(b, uint16(n+1))
	for _, v := range p.values {
		if v == nil {
			b = append(b, 0xff, 0xff, 0xff, 0xff)
			continue
		}
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
	}
	b = append(binary.BigEndian.AppendUint32(b, uint32(len(value))), value...)
	shorts(p.results)
	return seal(b, 0)
}
