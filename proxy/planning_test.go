package proxy

import (
	"testing"

	"pgaccel/engine"
)

// slowPlanner plans a text with "slow" when it is told to, and panics at one with "broken".
type slowPlanner struct {
	*fake
	begun, goOn chan struct{}
}

func (p slowPlanner) Prepare(sql string, oids []uint32) engine.Statement {
	switch {
	case p.is(sql, "slow"):
		p.begun <- struct{}{}
		<-p.goOn
	case p.is(sql, "broken"):
		panic("a bug")
	}
	return p.fake.Prepare(sql, oids)
}

func (slowPlanner) is(sql, word string) bool { return (&fake{word: word}).Mentions([]byte(sql)) }

// TestOthersDoNotWaitForPlans: while a text is planned other sessions of the loop are served, its own goes on afterwards with
// what has come meanwhile, and may end.
func TestOthersDoNotWaitForPlans(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		p := slowPlanner{newFake(), make(chan struct{}), make(chan struct{})}
		s := startProxy(t, p, change, func(c *Config) { c.loops = 1 })
		other := mustConnect(t, s.Addr().String(), "")
		defer other.Close()
		const slow = "select 'slow accel'"
		extended := appendEmpty(appendExecute(appendBind(appendParse(nil, "", slow, nil), "", "", nil), "", 0), 'S')
		for _, message := range [][]byte{query(slow), extended} {
			c := mustConnect(t, s.Addr().String(), "")
			c.send(message)
			<-p.begun
			wantRows(t, other.exchange(query("select 2")), "2")
			c.send(query("select 3"))
			wantRows(t, other.exchange(query("select 'accel'")), "accel")
			p.goOn <- struct{}{}
			wantRows(t, c.until('Z'), "slow accel")
			wantRows(t, c.until('Z'), "3")
			c.send(message)
			<-p.begun
			c.Close()
			wantRows(t, other.exchange(query("select 4")), "4")
			p.goOn <- struct{}{}
		}
		c := mustConnect(t, s.Addr().String(), "")
		defer c.Close()
		wantTypes(t, c.exchange(query("select 'broken accel'")), "EOF")
		wantRows(t, other.exchange(query("select 5")), "5")
	})
}
