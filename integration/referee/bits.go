package referee

import (
	"slices"

	"pgaccel/vector"
)

const (
	bit    = kind(vector.Bit)
	varbit = kind(vector.VarBit)
)

// bitString is what is computed of strings of bits by operators and casts; nil where there are none.
func (g *gen) bitString(k kind) *node {
	a := g.leaf(pick(g.r, bit, varbit, varbit))
	if g.chance(20) {
		if n := g.leaf(pick(g.r, int4, int8)); n != nil {
			a = op(typ{kind: bit}, pick(g.r, "@::bit(8)", "@::bit(3)", "@::bit(40)"), g.closed(n))
		}
	}
	if a == nil {
		return nil
	}
	if k == varbit {
		if b := g.leaf(pick(g.r, bit, varbit)); b != nil && g.chance(50) {
			return op(typ{kind: k}, "(@ || @)", a, b)
		}
		return op(typ{kind: k}, pick(g.r, "(@ || B'101')", "(B'' || @)", "@::varbit(2)", "@::varbit"), a)
	}
	f := pick(g.r, "(~ @)", "(@ << 2)", "(@ >> 1)", "@::bit(4)", "(@::bit(6) & B'101100')", "(@::bit(4) | B'1010')", "(@::bit(3) # @::bit(3))")
	n := 1
	if f == "(@::bit(3) # @::bit(3))" {
		n = 2
	}
	return op(typ{kind: k}, f, slices.Repeat([]*node{a}, n)...)
}
