package pushdown

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// location returns the byte of the text at which syntax begins, by the parser: an
// operator's is that of its symbol. Where it has none of its own it is that of the first
// thing in it; -1 where nothing has one.
func location(m proto.Message) int {
	if m == nil {
		return -1
	}
	r := m.ProtoReflect()
	if at := ownLocation(r); at >= 0 {
		return at
	}
	first := -1
	walk(r, func(n *pg.Node) {
		if at := ownLocation(n.ProtoReflect()); at >= 0 && (first < 0 || at < first) {
			first = at
		}
	})
	return first
}

func ownLocation(r protoreflect.Message) int {
	if oneof := r.Descriptor().Oneofs().ByName("node"); oneof != nil {
		field := r.WhichOneof(oneof)
		if field == nil {
			return -1
		}
		r = r.Get(field).Message()
	}
	field := r.Descriptor().Fields().ByName("location")
	if field == nil {
		return -1
	}
	return int(r.Get(field).Int())
}

// atKeyword says that what is analysed is a clause, which has no place in the syntax
// tree: the first of the given keywords in the text.
func (a *analyzer) atKeyword(keywords ...pg.Token) {
	a.at = nil
	if a.inView != nil {
		return
	}
	if a.tokens == nil {
		scan, err := pg.Scan(a.sql)
		if err != nil {
			return
		}
		a.tokens = scan.Tokens
	}
	for _, t := range a.tokens {
		if slices.Contains(keywords, t.Token) {
			a.at = &pg.RangeVar{Location: t.Start} // anything with a location
			return
		}
	}
}
