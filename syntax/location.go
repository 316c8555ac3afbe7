package syntax

import (
	"reflect"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
)

// Walk calls f for every Node of a part of a tree, in the grammar's order, and for those below
// one where f returns true for it; not for what modifies types. Go's reflection is several times
// as fast as protobuf's.
func Walk(part any, f func(*pg.Node) bool) { walk(reflect.ValueOf(part), f) }

func walk(v reflect.Value, f func(*pg.Node) bool) {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		switch x := v.Interface().(type) {
		case *pg.TypeName:
			return
		case *pg.Node:
			if x == nil || !f(x) {
				return
			}
		}
		walk(v.Elem(), f)
	case reflect.Slice:
		for i := range v.Len() {
			walk(v.Index(i), f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Field(i); field.CanInterface() {
				walk(field, f)
			}
		}
	}
}

// Location returns the byte of the text at which syntax begins, by the parser: an
// operator's is that of its symbol. Where it has none of its own it is that of the first
// thing in it; -1 where nothing has one.
func (t *Text) Location(part proto.Message) int {
	if part == nil {
		return -1
	}
	first := ownLocation(part)
	if first < 0 {
		Walk(part, func(n *pg.Node) bool {
			if at := ownLocation(n); at >= 0 && (first < 0 || at < first) {
				first = at
			}
			return true
		})
	}
	return max(-1, first-t.start)
}

func ownLocation(part any) int {
	v := reflect.ValueOf(part).Elem()
	if n, ok := part.(*pg.Node); ok && n.GetNode() != nil {
		v = reflect.ValueOf(n.Node).Elem().Field(0).Elem()
	}
	if v.Kind() == reflect.Struct {
		if own := v.FieldByName("Location"); own.IsValid() {
			return int(own.Int())
		}
	}
	return -1
}

// Keyword returns something whose location is that of the first of the given keywords in the
// text: clauses have no place in the tree. It is nil where there is none of them.
func (t *Text) Keyword(keywords ...pg.Token) proto.Message {
	for _, token := range t.tokens {
		if slices.Contains(keywords, token.Token) {
			return &pg.RangeVar{Location: token.Start}
		}
	}
	return nil
}
