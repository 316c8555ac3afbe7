package syntax

import (
	"cmp"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
)

// VirtualSchema is the schema whose relations pgaccel answers itself.
const VirtualSchema = "pgaccel"

// RewriteVirtual replaces each relation of the schema pgaccel in a SELECT by a
// subquery: relation maps a name to the SELECT that stands for it, which may refer to
// the parameter $param, the first behind those of the text, of which declared is the least
// number. param is 0 where there is nothing to replace.
func (t *Text) RewriteVirtual(declared int, relation func(name string, param int) (selectSQL string, ok bool)) (text string, param int) {
	if sel, _ := t.Select(); sel == nil {
		return "", 0
	}
	tree := &pg.ParseResult{Stmts: []*pg.RawStmt{proto.Clone(t.stmts[0]).(*pg.RawStmt)}}
	param = declared + 1
	Walk(tree, func(n *pg.Node) bool {
		param = max(param, int(n.GetParamRef().GetNumber())+1)
		return true
	})
	replaced := map[string]bool{}
	var refs []*pg.ColumnRef
	Walk(tree, func(n *pg.Node) bool {
		if ref := n.GetColumnRef(); ref != nil {
			refs = append(refs, ref)
		}
		r := n.GetRangeVar()
		if r.GetSchemaname() != VirtualSchema {
			return true
		}
		body, ok := relation(r.Relname, param)
		if !ok {
			return true
		}
		sub, err := pg.Parse(body)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		n.Node = &pg.Node_RangeSubselect{RangeSubselect: &pg.RangeSubselect{Subquery: sub.Stmts[0].Stmt, Alias: cmp.Or(r.Alias, &pg.Alias{Aliasname: r.Relname})}}
		tree.Version, replaced[r.Relname] = sub.Version, true
		return false
	})
	// pgaccel.tables.rows names the table by its schema, which a subquery has not.
	for _, ref := range refs {
		if len(ref.Fields) >= 3 && ref.Fields[0].GetString_().GetSval() == VirtualSchema && replaced[ref.Fields[1].GetString_().GetSval()] {
			ref.Fields = ref.Fields[1:]
		}
	}
	text, err := pg.Deparse(tree)
	if err != nil || len(replaced) == 0 {
		return "", 0
	}
	return text, param
}
