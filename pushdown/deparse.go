package pushdown

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"pgaccel/syntax"
)

// Syntax trees made of parts of others, and written as text.

// deparse writes a SELECT.
func deparse(sel *pg.SelectStmt) (string, bool) {
	return deparseStatement(&pg.Node{Node: &pg.Node_SelectStmt{SelectStmt: sel}})
}

// deparseStatement writes a statement. ok is false where what it writes would be read as another: the library leaves out
// parentheses that matter, as in (NOT a) IS NULL.
func deparseStatement(n *pg.Node) (text string, ok bool) {
	text, err := pg.Deparse(&pg.ParseResult{Version: syntax.TreeVersion, Stmts: []*pg.RawStmt{{Stmt: n}}})
	if err != nil {
		return "", false
	}
	again, err := pg.Parse(text)
	if err != nil || len(again.Stmts) != 1 {
		return "", false
	}
	return text, sameTree(n, again.Stmts[0].Stmt)
}

// sameTree reports whether two trees differ in nothing but where they stand in a text.
func sameTree(x, y *pg.Node) bool {
	x, y = proto.Clone(x).(*pg.Node), proto.Clone(y).(*pg.Node)
	withoutPlaces(x.ProtoReflect())
	withoutPlaces(y.ProtoReflect())
	return proto.Equal(x, y)
}

// withoutPlaces clears all that says where a tree stands in its text.
func withoutPlaces(m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Kind() == protoreflect.Int32Kind && !f.IsList() && strings.HasSuffix(string(f.Name()), "location"):
			m.Clear(f)
		case f.Kind() == protoreflect.MessageKind && f.IsList():
			for i := range v.List().Len() {
				withoutPlaces(v.List().Get(i).Message())
			}
		case f.Kind() == protoreflect.MessageKind && !f.IsMap():
			withoutPlaces(v.Message())
		}
		return true
	})
}

// selectItem is an item of a select list.
func selectItem(n *pg.Node, name string) *pg.Node {
	return &pg.Node{Node: &pg.Node_ResTarget{ResTarget: &pg.ResTarget{Name: name, Val: proto.Clone(n).(*pg.Node)}}}
}

// parsedExpr parses an expression.
func parsedExpr(sql string) *pg.Node {
	tree, err := pg.Parse("SELECT " + sql)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return tree.Stmts[0].Stmt.GetSelectStmt().TargetList[0].GetResTarget().Val
}
