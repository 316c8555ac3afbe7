package pushdown

import (
	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// virtualSchema is the schema whose relations pgaccel answers itself.
const virtualSchema = "pgaccel"

// RewriteVirtual replaces each relation of the schema pgaccel in a SELECT by a
// subquery: relation maps a name to the SELECT that stands for it, which may refer to
// the parameter $param, the first behind those of sql, of which declared is the least
// number. param is 0 where there is nothing to replace; the text is then sql's own. An
// error means that sql, or a replacement, cannot be parsed.
func RewriteVirtual(sql string, declared int, relation func(name string, param int) (selectSQL string, ok bool)) (text string, param int, err error) {
	if err := guard(sql); err != nil {
		return sql, 0, err
	}
	tree, err := pg.Parse(sql)
	if err != nil {
		return sql, 0, err
	}
	if len(tree.Stmts) != 1 || tree.Stmts[0].Stmt.GetSelectStmt() == nil {
		return sql, 0, nil
	}
	param = declared + 1
	walk(tree.ProtoReflect(), func(n *pg.Node) {
		if p := n.GetParamRef(); p != nil {
			param = max(param, int(p.Number)+1)
		}
	})
	replaced := map[string]bool{}
	var refs []*pg.ColumnRef
	walk(tree.ProtoReflect(), func(n *pg.Node) {
		switch x := n.Node.(type) {
		case *pg.Node_ColumnRef:
			refs = append(refs, x.ColumnRef)
		case *pg.Node_RangeVar:
			r := x.RangeVar
			if r.Schemaname != virtualSchema || err != nil {
				return
			}
			body, ok := relation(r.Relname, param)
			if !ok {
				return
			}
			sub, e := pg.Parse(body)
			if e != nil || len(sub.Stmts) != 1 {
				err = e
				return
			}
			alias := r.Alias
			if alias == nil {
				alias = &pg.Alias{Aliasname: r.Relname}
			}
			n.Node = &pg.Node_RangeSubselect{RangeSubselect: &pg.RangeSubselect{Subquery: sub.Stmts[0].Stmt, Alias: alias}}
			replaced[r.Relname] = true
		}
	})
	if err != nil || len(replaced) == 0 {
		return sql, 0, err
	}
	// pgaccel.tables.rows names the table by its schema, which a subquery has not.
	for _, ref := range refs {
		if len(ref.Fields) >= 3 && ref.Fields[0].GetString_().GetSval() == virtualSchema && replaced[ref.Fields[1].GetString_().GetSval()] {
			ref.Fields = ref.Fields[1:]
		}
	}
	text, err = pg.Deparse(tree)
	if err != nil {
		return sql, 0, err
	}
	return text, param, nil
}

// walk calls f for every Node below m. What f puts into a node is not walked.
func walk(m protoreflect.Message, f func(*pg.Node)) {
	visit(m, func(n *pg.Node) bool {
		before := n.Node
		f(n)
		return n.Node == before
	})
}

// visit calls f for every Node below m, and for those below it where f returns true.
func visit(m protoreflect.Message, f func(*pg.Node) bool) {
	var nodes []protoreflect.Message
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if fd.Message() == nil {
			return true
		}
		if fd.IsList() {
			for l, i := v.List(), 0; i < l.Len(); i++ {
				nodes = append(nodes, l.Get(i).Message())
			}
		} else {
			nodes = append(nodes, v.Message())
		}
		return true
	})
	for _, sub := range nodes {
		if n, ok := sub.Interface().(*pg.Node); ok && !f(n) {
			continue
		}
		visit(sub, f)
	}
}
