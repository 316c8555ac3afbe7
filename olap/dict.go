package olap

import (
	"slices"
	"strings"

	"pgaccel/colstore"
	"pgaccel/plan"
	"pgaccel/vector"
)

// dict gives the strings of a text node's codes. Equal strings have equal codes.
type dict struct {
	t     vector.Type
	n     int
	at    func(code int64) string
	src   *colstore.Dict // codes are those of this column dictionary; may be nil
	own   uint32         // src's collation: t may be another, by COLLATE
	index map[string]int64
	// decimals are the values in place of strings, for a type that is a Numeric (decimals.go).
	decimals []vector.Decimal
	keys     *colstore.Dict // decimals are those of this column dictionary; may be nil
	unheld   []int64        // codes of keys that are no decimals, ascending
	pool     *pool          // its strings come while rows are read; n is 0 then (see grows)
	// ranks are those of the column's own collation, bytewise those of C (see rank).
	ranks, bytewise []int32
}

func columnDict(d *colstore.Dict, t vector.Type) *dict {
	return &dict{t: t, n: d.Len(), at: d.At, src: d, own: t.Collation.OID}
}

func listDict(list []string, t vector.Type) *dict {
	return &dict{t: t, n: len(list), at: func(c int64) string { return list[c] }}
}

// with returns the dictionary, for values of type t, with more strings, whose codes begin at d.n.
func (d *dict) with(t vector.Type, more []string) *dict {
	return &dict{t: t, n: d.n + len(more), at: func(c int64) string {
		if c >= int64(d.n) {
			return more[c-int64(d.n)]
		}
		return d.at(c)
	}}
}

// append appends the string of a code.
func (d *dict) append(b []byte, code int64) []byte {
	if d.src != nil {
		return d.src.AppendBytes(b, code)
	}
	return append(b, d.at(code)...)
}

// each calls f with some codes and their strings, which are valid until f returns.
func (d *dict) each(from, to int, f func(code int, s string)) {
	if d.src == nil {
		for code := from; code < to; code++ {
			f(code, d.at(int64(code)))
		}
		return
	}
	d.src.EachView(int64(from), int64(to), func(code int64, s string) { f(int(code), s) })
}

// find returns the code of the string that equals s as values of the kind do.
func (d *dict) find(s string) (int64, bool) {
	if d.src != nil && d.t.Kind != vector.BPChar {
		return d.src.Find(s)
	}
	if d.index == nil {
		d.index = make(map[string]int64, d.n)
		for c := range int64(d.n) {
			d.index[canonical(d.t.Kind, d.at(c))] = c
		}
	}
	c, ok := d.index[canonical(d.t.Kind, s)]
	return c, ok
}

// rank returns the rank of each code in a collation: that of the column's own, or C.
// Ranks are not negative and may have gaps.
func (d *dict) rank(c vector.Collation) ([]int32, error) {
	if d.t.Kind == vector.Numeric {
		return d.decimalRanks(), nil
	}
	if r := d.ranked(c); r != nil {
		return r, nil
	}
	if !c.C {
		return nil, forward(plan.ReasonCollation, "order of text that the server has not ranked")
	}
	// memcmp: ranks of char(n) ignore the padding, which those of the column may not.
	list := make([]string, d.n)
	order := make([]int32, d.n)
	for i := range list {
		list[i] = canonical(d.t.Kind, d.at(int64(i)))
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return strings.Compare(list[a], list[b]) })
	d.bytewise = make([]int32, d.n)
	for r, code := range order {
		if d.bytewise[code] = int32(r); r > 0 && list[code] == list[order[r-1]] {
			d.bytewise[code] = d.bytewise[order[r-1]]
		}
	}
	return d.bytewise, nil
}

// inOrder reports whether the codes of texts are in the order of a collation: in that of bytes they are since the copy, whatever the
// column's is, as long as no others have come.
func (d *dict) inOrder(c vector.Collation) bool {
	return d.src != nil && d.n > 0 && c.C && d.t.Kind.IsText() && d.t.Kind != vector.BPChar && d.src.Ordered() >= d.n
}

// ranked returns the ranks of texts in a collation where they are known already, else nil.
func (d *dict) ranked(c vector.Collation) []int32 {
	own := d.src != nil && c.OID == d.own
	if own && d.ranks != nil {
		return d.ranks
	}
	if own && (d.t.Kind != vector.BPChar || !c.C) {
		if r := d.src.Ranks(); r != nil && len(r) >= d.n {
			d.ranks = r[:d.n]
			return d.ranks
		}
	}
	if c.C {
		return d.bytewise
	}
	return nil
}

// compare compares two strings, as values of kind k, by the ranks of the column's own
// collation; ok is false where these do not say how: c is another collation, or one of
// the strings is not the column's.
func (d *dict) compare(k vector.Kind, c vector.Collation, a, b string) (r int, ok bool) {
	if d.src == nil || c.OID != d.own {
		return 0, false
	}
	ranks, err := d.rank(c)
	if err != nil {
		return 0, false
	}
	x, okX := d.held(k, a)
	y, okY := d.held(k, b)
	if !okX || !okY {
		return 0, false
	}
	return int(ranks[x]) - int(ranks[y]), true
}

// held returns the code of s, a value of kind k. char(n) as text has no trailing blanks
// (rtrim1): text that ends in one is none of its values, and sorts elsewhere.
func (d *dict) held(k vector.Kind, s string) (code int64, ok bool) {
	if (d.t.Kind == vector.BPChar) != (k == vector.BPChar) && (k == vector.BPChar || strings.HasSuffix(s, " ")) {
		return 0, false
	}
	return d.find(s)
}
