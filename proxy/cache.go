package proxy

import (
	"cmp"
	"slices"
)

// statementCache holds the statements and portals of a session that concern the engine: what
// the server has under these names.
type statementCache struct {
	statements map[string]*statement
	portals    map[string]*portal
	cursors    map[string]*cursor // of SQL; none while anything but a FETCH may have been at them
	// invalidated is one more than the batch of the last portals that were forgotten though the
	// server may still have them.
	invalidated uint64
}

func (c *statementCache) addStatement(s *statement) {
	if c.statements == nil {
		c.statements = map[string]*statement{}
	}
	c.forgetStatement(s.name)
	c.statements[s.name] = s
}

func (c *statementCache) addPortal(p *portal) {
	if c.portals == nil {
		c.portals = map[string]*portal{}
	}
	c.forgetPortal(p.name)
	c.portals[p.name] = p
}

// forgetStatement forgets a name. Portals made of it live on, as in Postgres.
func (c *statementCache) forgetStatement(name string) {
	if len(c.statements) > 0 {
		delete(c.statements, name)
	}
}

func (c *statementCache) forgetPortal(name string) {
	if p := c.portals[name]; p != nil {
		c.drop(p)
	}
}

// drop forgets a portal and frees what it keeps, unless a local execution is at it, which
// frees it when it ends.
func (c *statementCache) drop(p *portal) {
	delete(c.portals, p.name)
	if p.answer != nil && !p.answer.busy {
		p.answer.free()
	}
}

// forgetPortals forgets all, cursors too.
func (c *statementCache) forgetPortals() {
	c.forgetCursors()
	for _, p := range c.portals {
		c.drop(p)
	}
}

// boundIn returns the portals whose Binds are kept, of those bound once so many Syncs and
// Queries had been sent, in their order.
func (c *statementCache) boundIn(batch uint64) (list []*portal) {
	for _, p := range c.portals {
		if p.batch == batch && p.message != nil {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b *portal) int { return cmp.Compare(a.order, b.order) })
	return list
}

// parseFailed takes back what a Parse was believed to do.
func (c *statementCache) parseFailed(s *statement) {
	s.dead = true
	if c.statements[s.name] == s {
		delete(c.statements, s.name)
	}
}

func (c *statementCache) bindFailed(p *portal) {
	p.dead = true
	if c.portals[p.name] == p {
		c.drop(p)
	}
}

// invalidateStatements forgets all statements: somebody may have deallocated them.
func (c *statementCache) invalidateStatements() {
	for name, s := range c.statements {
		s.dead = true
		delete(c.statements, name)
	}
	c.invalidatePortals()
}

// invalidatePortals forgets the portals that have not begun to answer here. Those that
// have are asked after before they go on.
func (c *statementCache) invalidatePortals() {
	for name, p := range c.portals {
		if p.answer == nil {
			p.dead, c.invalidated = true, max(c.invalidated, p.batch+1)
			delete(c.portals, name)
		}
	}
}

// transactionEnded forgets the portals of transactions that are over: those bound
// before the Sync or Query of the given number was sent.
func (c *statementCache) transactionEnded(batch uint64) {
	for _, p := range c.portals {
		if p.batch < batch {
			p.dead = true
			c.drop(p)
		}
	}
}
