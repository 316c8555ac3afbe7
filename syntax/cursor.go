package syntax

import (
	"math"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// Cursor is a DECLARE of a cursor over a SELECT that reads forwards and sends text, as it stands in a text:
// Prefix + Declare + Fetch.
type Cursor struct {
	Name string
	Hold bool
	// Forward: NO SCROLL is written.
	Forward bool

	Prefix  string // statements before it: those of Split; "" for none
	Begins  bool   // the first of them begins a transaction
	Declare string
	Fetch   string // a FETCH from it behind it; "" for none
	Rows    int64  // that this asks for, 0 for all
}

// DECLARE's options (parsenodes.h).
const (
	cursorBinary   = 0x0001
	cursorScroll   = 0x0002
	cursorNoScroll = 0x0004
	cursorHold     = 0x0020
)

// Cursor recognises a DECLARE that ends the text, or stands before a FETCH from it that does. rows is its
// SELECT; nil for anything else.
func (t *Text) Cursor() (c *Cursor, rows *Text) {
	n := len(t.stmts) - 1
	if t.refused != "" || n < 0 {
		return nil, nil
	}
	c = &Cursor{}
	end := len(t.SQL)
	fetched, count := t.stmts[n].Stmt.GetFetchStmt(), int64(0)
	if fetched != nil {
		var ok bool
		if count, ok = forwards(fetched); !ok || n == 0 {
			return nil, nil
		}
		end = int(t.stmts[n].StmtLocation)
		c.Fetch, c.Rows = t.SQL[end:], count
		n--
	}
	s := t.stmts[n].Stmt.GetDeclareCursorStmt()
	if s == nil || s.Options&(cursorBinary|cursorScroll) != 0 || s.Query.GetSelectStmt() == nil || hasParameters(s.Query) ||
		fetched != nil && fetched.Portalname != s.Portalname {
		return nil, nil
	}
	c.Name, c.Hold, c.Forward = s.Portalname, s.Options&cursorHold != 0, s.Options&cursorNoScroll != 0
	at := int(t.stmts[n].StmtLocation)
	c.Prefix, c.Declare = t.SQL[:at], t.SQL[at:end]
	var ok bool
	if c.Begins, ok = glued(t.stmts[:n]); !ok {
		return nil, nil
	}
	if length := int(t.stmts[n].StmtLen); length > 0 {
		end = at + length
	}
	return c, t.behind(pg.Token_FOR, at, end, s.Query)
}

// behind returns what stands behind the first token of that kind in t.SQL[at:end], which is query.
func (t *Text) behind(kind pg.Token, at, end int, query *pg.Node) *Text {
	i := slices.IndexFunc(t.tokens, func(token *pg.ScanToken) bool { return token.Token == kind && int(token.Start) >= at })
	if i < 0 {
		return nil
	}
	start, tokens := int(t.tokens[i].End), t.tokens[i+1:]
	if last := slices.IndexFunc(tokens, func(token *pg.ScanToken) bool { return int(token.Start) >= end }); last >= 0 {
		tokens = tokens[:last]
	}
	if len(tokens) > 0 {
		start = int(tokens[0].Start) // so that it is listed as the SELECT by itself is
	}
	return &Text{SQL: t.SQL[start:end], stmts: []*pg.RawStmt{{Stmt: query}}, tokens: tokens, start: start}
}

// forwards returns how many rows a FETCH asks for, 0 for all; ok is false where it is MOVE, or reads in
// another way than forwards.
func forwards(f *pg.FetchStmt) (rows int64, ok bool) {
	switch {
	case f.Ismove, f.Direction != pg.FetchDirection_FETCH_FORWARD, f.HowMany <= 0:
		return 0, false
	case f.HowMany > math.MaxInt32:
		return 0, true // FETCH_ALL
	}
	return f.HowMany, true
}

// CursorCommand is a statement that concerns cursors: of the four, one is set.
type CursorCommand struct {
	Fetch, Close, Commit, Rollback bool

	Name string // of the cursor; CLOSE: "" for all
	Rows int64  // FETCH: that it asks for, 0 for all
}

// CursorCommands returns what the text is made of if that is a FETCH that reads forwards; or CLOSE
// statements, with a COMMIT or ROLLBACK at the end, or one of the latter; nil for anything else.
func (t *Text) CursorCommands() (list []CursorCommand) {
	if t.refused != "" {
		return nil
	}
	for i, raw := range t.stmts {
		last := i == len(t.stmts)-1
		c := CursorCommand{}
		switch kind := raw.Stmt.GetTransactionStmt().GetKind(); {
		case raw.Stmt.GetFetchStmt() != nil && len(t.stmts) == 1:
			f := raw.Stmt.GetFetchStmt()
			c.Name = f.Portalname
			if c.Rows, c.Fetch = forwards(f); !c.Fetch {
				return nil
			}
		case raw.Stmt.GetClosePortalStmt() != nil:
			c.Close, c.Name = true, raw.Stmt.GetClosePortalStmt().Portalname
		case kind == pg.TransactionStmtKind_TRANS_STMT_COMMIT && last:
			c.Commit = true
		case kind == pg.TransactionStmtKind_TRANS_STMT_ROLLBACK && last:
			c.Rollback = true
		default:
			return nil
		}
		list = append(list, c)
	}
	return list
}
