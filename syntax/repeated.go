package syntax

import (
	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// RepeatedConstants returns what parameters of the select list stand for, as it is written, by their numbers.
// pg_stat_statements replaces no constants of an expression in GROUP BY, ORDER BY or DISTINCT ON that the select list
// has, too: SELECT a / $1 ... GROUP BY a / 5.
func (t *Text) RepeatedConstants() map[int]string {
	found := map[int]string{}
	for _, raw := range t.stmts {
		Walk(raw.Stmt, func(n *pg.Node) bool {
			if s := n.GetSelectStmt(); s != nil {
				t.repeated(s, found)
			}
			return true
		})
	}
	return found
}

func (t *Text) repeated(s *pg.SelectStmt, found map[int]string) {
	var keys []*pg.Node
	keys = append(append(keys, s.GroupClause...), s.DistinctClause...)
	for _, n := range s.SortClause {
		keys = append(keys, n.GetSortBy().GetNode())
	}
	for _, target := range s.TargetList {
		of := target.GetResTarget().GetVal()
		for _, key := range keys {
			constants := map[int]string{}
			if of == nil || key == nil || !t.alike(of.ProtoReflect(), key.ProtoReflect(), constants) {
				continue
			}
			for number, text := range constants {
				found[number] = text
			}
		}
	}
}

// alike reports whether two trees are the same but for places, and for parameters of the first that are
// constants in the second, which are noted.
func (t *Text) alike(a, b protoreflect.Message, constants map[int]string) bool {
	if n, ok := a.Interface().(*pg.Node); ok && n.GetParamRef() != nil {
		other, _ := b.Interface().(*pg.Node)
		if c := other.GetAConst(); c != nil {
			text := t.tokenAt(int(c.Location))
			constants[int(n.GetParamRef().Number)] = text
			return text != ""
		}
	}
	if a.Descriptor() != b.Descriptor() {
		return false
	}
	fields := a.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		switch {
		case f.Name() == "location":
		case a.Has(f) != b.Has(f):
			return false
		case !a.Has(f):
		case f.IsList():
			x, y := a.Get(f).List(), b.Get(f).List()
			if x.Len() != y.Len() {
				return false
			}
			for j := range x.Len() {
				if !t.alikeValue(f, x.Get(j), y.Get(j), constants) {
					return false
				}
			}
		case !t.alikeValue(f, a.Get(f), b.Get(f), constants):
			return false
		}
	}
	return true
}

func (t *Text) alikeValue(f protoreflect.FieldDescriptor, x, y protoreflect.Value, constants map[int]string) bool {
	if f.Kind() == protoreflect.MessageKind {
		return t.alike(x.Message(), y.Message(), constants)
	}
	return x.Equal(y)
}

// tokenAt returns the token that begins at a place of the text that was parsed; "" where none does.
func (t *Text) tokenAt(at int) string {
	for _, token := range t.tokens {
		if int(token.Start) == at {
			return t.SQL[int(token.Start)-t.start : int(token.End)-t.start]
		}
	}
	return ""
}
