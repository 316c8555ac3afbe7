package syntax

import (
	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
)

// Written returns the SELECT whose rows a CREATE TABLE AS or an INSERT writes, and does nothing else with
// them than that: nil for any other text.
func (t *Text) Written() *pg.SelectStmt {
	if t.refused != "" || len(t.stmts) != 1 {
		return nil
	}
	return writtenOf(t.stmts[0].Stmt)
}

func writtenOf(n *pg.Node) *pg.SelectStmt {
	var sel *pg.SelectStmt
	if c := n.GetCreateTableAsStmt(); c != nil && c.Objtype == pg.ObjectType_OBJECT_TABLE && !c.Into.GetSkipData() && c.Into.GetViewQuery() == nil {
		sel = c.Query.GetSelectStmt()
	} else if i := n.GetInsertStmt(); i != nil && i.WithClause == nil && i.OnConflictClause == nil && len(i.ReturningList) == 0 {
		sel = i.SelectStmt.GetSelectStmt()
	}
	if sel == nil || len(sel.ValuesLists) > 0 || sel.IntoClause != nil {
		return nil
	}
	return sel
}

// Tree returns a copy of the text's statement, and in it the SELECT that it is, or whose rows it writes; nil for any other text.
func (t *Text) Tree() (*pg.Node, *pg.SelectStmt) {
	sel, _ := t.Select()
	if sel == nil && t.Written() == nil {
		return nil, nil
	}
	n := cloneNode(t.stmts[0].Stmt)
	if sel != nil {
		return n, n.GetSelectStmt()
	}
	return n, writtenOf(n)
}

func cloneNode(n *pg.Node) *pg.Node { return proto.Clone(n).(*pg.Node) }
