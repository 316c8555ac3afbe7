package proxy

import (
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"pgaccel/engine"
	"pgaccel/plan"
	"pgaccel/wire"
)

// The gate is prepared once in a session, since to parse and plan it costs ten times
// what it costs to run. It may fail: a statement of the client's, or a function, may have
// deallocated it, and a role may lack the right to run it (EXECUTE on a built-in function,
// SELECT on a catalog, USAGE on pg_catalog), which another session may revoke at any moment.
// So it is run only where its error can be undone:
//
//	in a transaction block                               inside of a savepoint
//	outside, where the server has run nothing of the     an error undoes Binds, which are sent
//	batch, which is one transaction                      again behind a Sync of pgaccel's
//
// Elsewhere the statement is forwarded. Behind an error a missing gate is prepared, and run
// again; where the role may not run it, the statement is forwarded. The savepoint costs the
// server 10 to 20 microseconds of processor time, where the gate costs 45.
//
// Constants of the statement that the server computes are asked for by a statement of their own
// behind the gate's, wherever that is run. An error of theirs is undone likewise, and the statement
// forwarded: it depends on the rows whether it has that error.
//
// Where it hangs on what is on its way whether there is a block, the local execution settles first: it
// waits until the server has answered everything before it.

const (
	savepointSQL  = "SAVEPOINT pgaccel_gate"
	releaseSQL    = "RELEASE SAVEPOINT pgaccel_gate"
	rollbackToSQL = "ROLLBACK TO SAVEPOINT pgaccel_gate"
)

// gateEnded takes the tag of a statement of the client's into account.
func (s *session) gateEnded(tag []byte) {
	switch string(tag) {
	case "BEGIN", "START TRANSACTION":
		s.block = 'T'
	case "COMMIT", "ROLLBACK", "PREPARE TRANSACTION": // AND CHAIN and ROLLBACK TO SAVEPOINT, too
		s.block = 0
	}
}

// gateReady takes a ReadyForQuery into account.
func (s *session) gateReady(k reply) {
	s.block = s.status
	if k&(replyKind|replyOwn) == replyQuery && s.done < s.batchedQuery {
		// From PostgreSQL 17 on, T may be the implicit block of the batch that the Query
		// stands in, where SAVEPOINT fails.
		s.block = 0
	}
}

// unsettled reports that how the gate is to be run depends on answers to come.
func (s *session) unsettled() bool {
	return s.queue.executes > 0 || s.block == 0 && s.sent != s.done
}

// undoes reports whether an error in the batch of an Execute of p (a Query, where p is
// nil) would undo anything but Binds that can be sent again.
func (s *session) undoes(p *portal) bool {
	switch {
	case s.block != 'I':
		return true
	case p == nil:
		return false
	}
	return s.queue.sent != s.batch.sent || s.batch.repeatable || p.batch != s.sent ||
		s.queue.bound-s.batch.bound != s.batch.kept || s.cache.invalidated > s.sent
}

// gateRun is a gate under way, and what the stages that run one share.
type gateRun struct {
	passive
	form      engine.GateForm
	constants *engine.Constants // asked for behind it; nil for none
	answer    engine.Gate
	malformed bool // a row of it cannot be read
	free      bool // an error undoes nothing that is not easily done again
	guarded   bool // it runs inside of a savepoint
	retried   bool // it was prepared anew

	description // of a Query's result, or of a COPY's rows
}

// gateBatch runs the gate for the local execution, and prepares it where it is not or may not
// be there.
func (s *session) gateBatch(b []byte, g *gateRun, anew bool) []byte {
	call := s.local.decision.Gate()
	g.form = call.Form
	g.answer = engine.Gate{Sent: time.Now(), Asked: call}
	if g.guarded = s.block == 'T'; g.guarded {
		b = s.command(b, savepointSQL)
	}
	b = s.describeSubstitutes(b, g) // where an error of it can be undone
	b = s.gateOf(b, call.Form, call.Params, anew || !s.gatePrepared[call.Form])
	if g.constants != nil {
		b = s.constants(b, g.constants, s.local.portal)
	}
	if g.guarded {
		b = s.command(b, releaseSQL)
	}
	return b
}

func (g *gateRun) row(body []byte) {
	row, ok := readRow(body)
	if !ok {
		g.malformed = true
		return
	}
	g.answer.Rows = append(g.answer.Rows, row)
}

// constants has the server compute constants of the statement, in the format that does not depend on
// settings. They are another statement than the gate, which is planned once in a session. Values of
// p's that occur are passed on as they are.
func (s *session) constants(b []byte, c *engine.Constants, p *portal) []byte {
	n := len(c.Params)
	types, values, null, formats := slices.Clone(c.Params), make([][]byte, n), make([]bool, n), make([]int16, n)
	for i, oid := range types {
		if oid == 0 {
			types[i], null[i] = oidText, true
			continue
		}
		values[i], null[i], formats[i] = p.values[i], p.values[i] == nil, p.format(i)
	}
	b = appendNamed(b, wire.Close, 'P', constantsName) // where the last attempt failed
	b = appendNamed(b, wire.Close, 'S', constantsName)
	b = appendParse(b, constantsName, c.SQL, types)
	b = appendBindAs(b, constantsName, constantsName, values, null, formats, []int16{wire.FormatBinary})
	b = appendExecute(b, constantsName, 0)
	b = appendNamed(b, wire.Close, 'P', constantsName)
	b = appendNamed(b, wire.Close, 'S', constantsName)
	for _, k := range []reply{replyClose, replyClose, replyParse, replyBind, replyExecute, replyClose, replyClose} {
		s.own(k)
	}
	return b
}

const oidText = 25

// constantsOf returns what the statement of an Execute of p (a Query, where p is nil) asks for; nil,
// too, where p does not have the parameters: then it is not answered here.
func constantsOf(d engine.Decision, p *portal) *engine.Constants {
	c := d.Constants()
	if c != nil && len(c.Params) > 0 && (p == nil || len(p.values) != len(c.Params)) {
		return nil
	}
	return c
}

// typed reports whether the parameters have the types that were supposed.
func typed(c *engine.Constants, oids []uint32) bool {
	for i, oid := range c.Params {
		if oid != 0 && (i >= len(oids) || oids[i] != oid) {
			return false
		}
	}
	return true
}

// readConstants takes them from the end of the gate's rows. ascii restricts text to what every
// encoding agrees on.
func (g *gateRun) readConstants(ascii bool) bool {
	last := len(g.answer.Rows) - 1
	if last < 0 {
		return false
	}
	row := g.answer.Rows[last]
	g.answer.Rows = g.answer.Rows[:last]
	for ; len(row) >= 2; row = row[2:] {
		if row[0] == nil || len(*row[0]) != 4 {
			return false
		}
		var raw []byte
		if row[1] != nil {
			raw = []byte(*row[1])
		}
		d, err := wire.DecodeParam(binary.BigEndian.Uint32([]byte(*row[0])), wire.FormatBinary, raw)
		if err != nil || ascii && d.Type.Kind.IsString() && !wire.IsASCII(raw) {
			return false
		}
		g.answer.Constants = append(g.answer.Constants, d)
	}
	return true
}

// uncertain reports that an error in answer to a message of kind k is one of the constants', which can
// be borne: the gate has answered before.
func (g *gateRun) uncertain(k reply, code string) bool {
	if g.constants == nil || len(g.answer.Rows) == 0 || !g.bearable() || k&replyOwn == 0 {
		return false
	}
	switch k & replyKind {
	case replyParse, replyBind, replyExecute:
		return strings.HasPrefix(code, "22") || strings.HasPrefix(code, "42") || strings.HasPrefix(code, "0A") || code == noSuchSchema
	}
	return false
}

// bearable says that an error of the gate's can be undone.
func (g *gateRun) bearable() bool { return g.free || g.guarded }

// gone reports that an error in answer to a message of kind k says that somebody has
// deallocated the gate, which can be made up for.
func (g *gateRun) gone(k reply, code string) bool {
	return g.bearable() && !g.retried && k&(replyOwn|replyKind) == replyBind|replyOwn && code == noSuchStatement
}

// refused reports that an error in answer to a message of kind k says that the session's role
// may not run the gate, which can be borne.
func (g *gateRun) refused(k reply, code string) bool {
	if !g.bearable() || k&replyOwn == 0 {
		return false
	}
	switch k & replyKind {
	case replyParse, replyBind, replyExecute:
		return strings.HasPrefix(code, "42") || code == noSuchSchema
	}
	return false
}

// undoGate leads back to where the local execution was before its gate, which has failed.
func (s *session) undoGate(b []byte, g *gateRun) []byte {
	s.record(spanGate, g.answer.Sent)
	s.gatePrepared[g.form] = len(g.answer.Rows) > 0 // then a constant has failed
	if g.guarded {
		b = s.command(b, rollbackToSQL)
		b = s.command(b, releaseSQL)
	} else if s.local.portal != nil {
		for _, p := range s.cache.boundIn(s.sent) {
			if p.head != nil {
				b = s.bindPlaceholder(b, p)
				continue
			}
			b = append(b, p.message...)
			s.own(replyBind)
		}
	}
	return b
}

// refusedFor is how long a session does without gates after one that it may not run: each
// leaves an error in the server's log.
const refusedFor = 10 * time.Second

// gateRecentlyRefused reports that the session does without gates.
func (s *session) gateRecentlyRefused() bool {
	return !s.refused.IsZero() && time.Since(s.refused) < refusedFor
}

// gateBarred says why no gate may be run for an Execute of p (a Query, where p is nil): the
// last one was refused, or an error would show. It is "" where one may be, perhaps once the
// local execution has settled.
func (s *session) gateBarred(p *portal) plan.Reason {
	switch {
	case s.gateRecentlyRefused():
		return plan.ReasonPrivilege
	case !s.unsettled() && s.block != 'T' && s.undoes(p):
		return plan.ReasonNotSelect
	}
	return ""
}

// gateOf runs the gate of a statement.
func (s *session) gateOf(b []byte, form engine.GateForm, params []string, prepare bool) []byte {
	gateName := gateNames[form]
	if prepare {
		b = appendNamed(b, wire.Close, 'S', gateName)
		b = appendParse(b, gateName, form.SQL(), nil)
		s.own(replyClose)
		s.own(replyParse)
	}
	b = appendBind(b, gateName, gateName, params)
	b = appendExecute(b, gateName, 0)
	b = appendNamed(b, wire.Close, 'P', gateName)
	s.own(replyBind)
	s.own(replyExecute)
	s.own(replyClose)
	return b
}

// command runs a command of pgaccel's that takes no parameters.
func (s *session) command(b []byte, sql string) []byte { return s.commandOver(b, sql, nil, nil) }

// commandOver is command with parameters, in binary format.
func (s *session) commandOver(b []byte, sql string, types []uint32, values [][]byte) []byte {
	b = appendNamed(b, wire.Close, 'P', commandName) // where the last attempt failed
	b = appendNamed(b, wire.Close, 'S', commandName)
	b = appendParse(b, commandName, sql, types)
	b = appendBindAs(b, commandName, commandName, values, make([]bool, len(values)), []int16{wire.FormatBinary}, nil)
	b = appendExecute(b, commandName, 0)
	b = appendNamed(b, wire.Close, 'P', commandName)
	b = appendNamed(b, wire.Close, 'S', commandName)
	for _, k := range []reply{replyClose, replyClose, replyParse, replyBind, replyExecute, replyClose, replyClose} {
		s.own(k)
	}
	return b
}
