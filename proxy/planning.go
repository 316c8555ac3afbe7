package proxy

import (
	"fmt"
	"runtime/debug"
	"slices"

	"pgaccel/engine"
)

// planning is a text that the engine parses and plans beside the session, as that may take long: other sessions of a loop
// do not wait for it. The message that has it is looked at again once it is planned.
type planning struct {
	engine engine.Decider
	sql    string
	oids   []uint32
	begun  bool
	st     engine.Statement // nil until the session is told
}

// run plans, outside of the machine. err is a panic amid it.
func (p *planning) run() (st engine.Statement, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v\n%s", r, debug.Stack())
		}
	}()
	return p.engine.Prepare(p.sql, p.oids), nil
}

// plansAside reports whether a text that the client has sent is to be planned beside the session first, which is begun then.
func (s *session) plansAside(sql []byte, oids []uint32) bool {
	if p := s.planning; p != nil && p.matches(string(sql), oids) || !s.engine.Mentions(sql) || !s.engine.Plans(string(sql), oids) {
		return false
	}
	s.planning = &planning{engine: s.engine, sql: string(sql), oids: oids}
	return true
}

func (p *planning) matches(sql string, oids []uint32) bool {
	return p.sql == sql && slices.Equal(p.oids, oids)
}

// underWay reports that the session waits for it.
func (p *planning) underWay() bool { return p != nil && p.st == nil }

// takePlanning returns what is to be planned, once.
func (s *session) takePlanning() *planning {
	if !s.planning.underWay() || s.planning.begun {
		return nil
	}
	s.planning.begun = true
	return s.planning
}

// planned lets the session go on with the message. A panic amid the planning is one of the session's.
func (p *planning) planned(st engine.Statement, err error) {
	if err != nil {
		panic(err)
	}
	p.st = st
}

// prepare is the engine's Prepare, unless that has been done beside the session.
func (s *session) prepare(sql string, oids []uint32) engine.Statement {
	if p := s.planning; p != nil && p.st != nil && p.matches(sql, oids) {
		return p.st
	}
	return s.engine.Prepare(sql, oids)
}
