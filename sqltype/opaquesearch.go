package sqltype

import (
	"encoding/binary"
	"strconv"
	"strings"
)

// opaqueSearch are the types of text search.
var opaqueSearch = []Opaque{
	{OID: 3614, Name: "tsvector", OpaqueSettings: OpaqueSettings{Encoded: true}, valid: func(r *reader) { readVector(r, nil) },
		AppendText: appendVector, Samples: []string{"", "a", "a:1 bb:2A,3B,4C,5D", "'it''s' 'back\\\\slash':16383", "größe:7 'a b':1,2"}},
	{OID: 3615, Name: "tsquery", OpaqueSettings: OpaqueSettings{Encoded: true}, valid: func(r *reader) { readQuery(r) },
		AppendText: appendQuery, Samples: []string{"", "a", "a & b | c", "(a | b) & !c", "!(a & b)", "!!a", "a <-> b <-> c", "a <-> (b <2> c)", "a:*AB & 'it''s':D", "(a & b) <3> !c", "a | b & c <-> d", "((a | b) | c) & (d <-> (e | f))", "!a <-> b", "'back\\\\slash':*", "(a <-> b) & (c | (d & e))"}},
}

// string takes what ends with a zero.
func (r *reader) string() string {
	s, rest, ok := strings.Cut(r.rest, "\x00")
	if !ok || !ValidText([]byte(s)) {
		r.short, r.rest = true, ""
		return ""
	}
	r.rest = rest
	return s
}

// readVector calls f with each lexeme and its positions, of two bytes each (tsvectorsend in src/backend/utils/adt/tsvector.c).
func readVector(r *reader, f func(lexeme, positions string)) {
	for n := r.int32(); n > 0 && !r.short; n-- {
		lexeme := r.string()
		positions := r.take(2 * int(uint16(r.int16())))
		if f != nil {
			f(lexeme, positions)
		}
	}
}

// appendVector is tsvectorout. A position has its weight in the two upper bits.
func appendVector(dst []byte, raw string) []byte {
	start := len(dst)
	readVector(&reader{rest: raw}, func(lexeme, positions string) {
		if len(dst) > start {
			dst = append(dst, ' ')
		}
		dst = appendLexeme(dst, lexeme)
		for i := 0; i < len(positions); i += 2 {
			p := binary.BigEndian.Uint16([]byte(positions[i:]))
			separator := byte(',')
			if i == 0 {
				separator = ':'
			}
			dst = strconv.AppendUint(append(dst, separator), uint64(p&(1<<14-1)), 10)
			if weight := p >> 14; weight > 0 {
				dst = append(dst, "DCBA"[weight])
			}
		}
	})
	return dst
}

// appendLexeme writes a lexeme in quotes; those within, and backslashes, are doubled.
func appendLexeme(dst []byte, lexeme string) []byte {
	dst = append(dst, '\'')
	for i := range len(lexeme) {
		if c := lexeme[i]; c == '\'' || c == '\\' {
			dst = append(dst, c)
		}
		dst = append(dst, lexeme[i])
	}
	return append(dst, '\'')
}

// Items of a tsquery, and its operators by how tightly they bind (utils/adt/tsquery.c, tsearch/ts_type.h).
const (
	queryValue    = 1
	queryOperator = 2

	queryNot    = 1
	queryAnd    = 2
	queryOr     = 3
	queryPhrase = 4

	queryDepth = 10_000 // the server's own stack ends before that
)

var queryPriority = [...]int{queryNot: 4, queryAnd: 2, queryOr: 1, queryPhrase: 3}

// queryItem is a lexeme, or an operator over left and right: of NOT only right.
type queryItem struct {
	lexeme      string
	weights     byte
	prefix      bool
	operator    byte // 0 of a lexeme
	distance    int64
	left, right *queryItem
}

// readQuery reads a tsquery, nil where it is empty.
func readQuery(r *reader) *queryItem {
	n := r.int32()
	if n == 0 || r.short {
		return nil
	}
	item := readItem(r, &n, queryDepth)
	r.short = r.short || n != 0
	return item
}

// readItem reads an item and what it is over: the right operand comes first. left counts the items that are to come.
func readItem(r *reader, left *int32, depth int) *queryItem {
	q := &queryItem{}
	if *left--; *left < 0 || depth == 0 || r.short {
		r.short = true
		return q
	}
	switch r.byte() {
	case queryValue:
		q.weights, q.prefix, q.lexeme = r.byte(), r.byte() != 0, r.string()
	case queryOperator:
		q.operator = r.byte()
		if q.operator < queryNot || q.operator > queryPhrase {
			r.short = true
			return q
		}
		if q.operator == queryPhrase {
			q.distance = int64(r.int16())
		}
		q.right = readItem(r, left, depth-1)
		if q.operator != queryNot {
			q.left = readItem(r, left, depth-1)
		}
	default:
		r.short = true
	}
	return q
}

// appendQuery is tsqueryout.
func appendQuery(dst []byte, raw string) []byte {
	q := readQuery(&reader{rest: raw})
	if q == nil {
		return dst
	}
	return q.append(dst, -1, false)
}

// append writes an item below an operator of a priority, as the right operand of a phrase or not: phrases do not commute.
func (q *queryItem) append(dst []byte, above int, rightOfPhrase bool) []byte {
	if q.operator == 0 {
		return q.appendValue(dst)
	}
	priority := queryPriority[q.operator]
	parentheses := priority < above || q.operator == queryPhrase && priority == above && rightOfPhrase
	if parentheses {
		dst = append(dst, "( "...)
	}
	switch q.operator {
	case queryNot:
		dst = q.right.append(append(dst, '!'), priority, false)
	default:
		dst = q.left.append(dst, priority, false)
		switch {
		case q.operator == queryAnd:
			dst = append(dst, " & "...)
		case q.operator == queryOr:
			dst = append(dst, " | "...)
		case q.distance == 1:
			dst = append(dst, " <-> "...)
		default:
			dst = append(strconv.AppendInt(append(dst, " <"...), q.distance, 10), "> "...)
		}
		dst = q.right.append(dst, priority, q.operator == queryPhrase)
	}
	if parentheses {
		dst = append(dst, " )"...)
	}
	return dst
}

// appendValue writes a lexeme, with its weights.
func (q *queryItem) appendValue(dst []byte) []byte {
	dst = appendLexeme(dst, q.lexeme)
	if q.weights == 0 && !q.prefix {
		return dst
	}
	dst = append(dst, ':')
	if q.prefix {
		dst = append(dst, '*')
	}
	for i, weight := range "ABCD" {
		if q.weights&(8>>i) != 0 {
			dst = append(dst, byte(weight))
		}
	}
	return dst
}
