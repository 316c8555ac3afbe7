package syntax

import (
	"errors"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// Qualified returns the text of a SELECT with a schema put before each of the names, which name tables, that has none: it
// means the same under any search_path. The error says that this is not certain.
func (t *Text) Qualified(schemas map[string]string) (string, error) {
	n, sel := t.Tree()
	if sel == nil || n.GetSelectStmt() == nil {
		return "", errors.New("no SELECT")
	}
	hidden := false
	Walk(n, func(n *pg.Node) bool {
		if c := n.GetCommonTableExpr(); c != nil && schemas[c.Ctename] != "" {
			hidden = true
		}
		if r := n.GetRangeVar(); r != nil && r.Schemaname == "" {
			r.Schemaname = schemas[r.Relname]
		}
		return true
	})
	if hidden {
		return "", errors.New("WITH has the name of a table")
	}
	return pg.Deparse(&pg.ParseResult{Version: TreeVersion, Stmts: []*pg.RawStmt{{Stmt: n}}})
}

// TreeVersion is that of the parser's trees, without which none is written.
var TreeVersion = func() int32 {
	tree, err := pg.Parse("SELECT")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return tree.Version
}()
