package syntax

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// Prepared returns the name and the statement of a PREPARE, or the name alone of what an EXECUTE executes; no name for other texts.
func (t *Text) Prepared() (name, statement string) {
	if t.refused != "" || len(t.stmts) != 1 {
		return "", ""
	}
	if x := t.stmts[0].Stmt.GetExecuteStmt(); x != nil {
		return x.Name, ""
	}
	p := t.stmts[0].Stmt.GetPrepareStmt()
	if p == nil {
		return "", ""
	}
	// The types in parentheses hold no AS.
	for _, token := range t.tokens {
		if token.Token == pg.Token_AS {
			return p.Name, strings.TrimRight(t.SQL[int(token.End)-t.start:], "; \t\r\n")
		}
	}
	return "", ""
}
