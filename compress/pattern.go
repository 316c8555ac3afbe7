package compress

import (
	"math/bits"
	"strings"

	"pgaccel/internal/simd"
)

// Pattern is a finite automaton for literals in their order with anything between them, as
// LIKE 'a%b%c' has them: the first stands at the beginning, the last at the end, and each of
// the others is taken where it first occurs, as that leaves most to the next (Knuth, Morris,
// Pratt: "Fast Pattern Matching in Strings", 1977). It is immutable once made.
type Pattern struct {
	next   [][256]uint8 // by state and byte; 0 is where it begins
	accept []bool       // by state at the end
	first  string       // what all that is matched begins with
	only   bool         // nothing more is asked
}

// patternStates is how many states an automaton over codes has room for, half of them for the
// bytes behind an escape.
const patternStates = 256

// NewPattern returns the automaton of two literals or more, of which the first and the last may
// be empty; nil where they are too long.
func NewPattern(literals []string) *Pattern {
	n := 2 // where no match is possible any more, and the last
	for _, l := range literals {
		n += len(l)
	}
	if len(literals) < 2 || n > patternStates/2 {
		return nil
	}
	p := &Pattern{next: make([][256]uint8, n), accept: make([]bool, n), first: literals[0],
		only: len(strings.Join(literals, "")) == len(literals[0])}
	dead, at := uint8(n-1), 0
	for i := range 256 {
		p.next[dead][i] = dead
	}
	first, middle, last := literals[0], literals[1:len(literals)-1], literals[len(literals)-1]
	for i := range len(first) {
		for c := range 256 {
			p.next[at][c] = dead
		}
		p.next[at][first[i]] = uint8(at + 1)
		at++
	}
	for _, l := range middle {
		if l != "" {
			p.search(at, l)
			at += len(l)
		}
	}
	p.search(at, last)
	p.accept[at+len(last)] = true
	return p
}

// search makes the states at, at+1, ...: so many bytes of l have been met, at last. Once all of l
// has, the state at+len(l) is another literal's, or goes on as the search for l does.
func (p *Pattern) search(at int, l string) {
	back := at // the state for what was met without its first byte
	for i := range len(l) + 1 {
		from := &p.next[at+i]
		if i > 0 {
			*from = p.next[back]
		} else {
			for c := range 256 {
				from[c] = uint8(at)
			}
		}
		if i == len(l) {
			return
		}
		if i > 0 {
			back = int(p.next[back][l[i]])
		}
		from[l[i]] = uint8(at + i + 1)
	}
}

// Prefix returns what all that is matched begins with; only: all that begins so is matched.
func (p *Pattern) Prefix() (first string, only bool) { return p.first, p.only }

// Match reports whether s is matched.
func (p *Pattern) Match(s []byte) bool {
	state := uint8(0)
	for _, c := range s {
		state = p.next[state][c]
	}
	return p.accept[state]
}

// Matcher is a Pattern for strings that a symbol table has encoded: they are matched without
// being decoded. It is immutable.
type Matcher struct {
	// next is by state<<8 | code. The upper half of the states are those in which the next code
	// is a byte, behind an escape.
	next   [patternStates * 256]uint8
	accept [patternStates]bool
	states int          // those of the pattern
	leave  simd.ByteSet // codes that lead from state 0 to another
	few    bool         // there are few of them
}

// leaveMost is how many codes may lead from state 0 to another for Leaving to be worth while: of 'google' these are
// the symbols with its first letters at their end.
const leaveMost = 64

// Matcher returns the automaton over codes of t.
func (p *Pattern) Matcher(t *Symbols) *Matcher {
	m := &Matcher{states: len(p.next)}
	for s := range p.next {
		escaped := s + patternStates/2
		m.accept[s], m.accept[escaped] = p.accept[s], p.accept[s]
		for code := range 256 {
			to := uint8(s)
			for i := range t.sizes[code] {
				to = p.next[to][uint8(t.words[code]>>(8*i))]
			}
			m.next[s<<8|code] = to
			m.next[escaped<<8|code] = p.next[s][code]
		}
		m.next[s<<8|SymbolEscape] = uint8(escaped)
	}
	leave := 0
	for code := range 256 {
		if m.next[code] != 0 {
			m.leave.Add(uint8(code))
			leave++
		}
	}
	m.few = leave <= leaveMost
	return m
}

// Leaving sets the bits of found of those of the first n codes that lead from state 0 to another, and the bits behind
// them to anything: in between, a string in state 0 stays there. It reports false where it is quicker to go
// step by step.
func (m *Matcher) Leaving(found []uint64, codes []byte, n int) bool {
	if m.few {
		simd.FindBytes(found, codes, n, &m.leave)
	}
	return m.few
}

// Run is Step from state 0 by the codes from..to-1, of which found is what Leaving says.
func (m *Matcher) Run(found []uint64, codes []byte, from, to int) uint8 {
	state := uint8(0)
	for ; from < to; from++ {
		if state == 0 {
			rest := found[from>>6] >> (from & 63)
			for rest == 0 {
				if from = from&^63 + 64; from >= to {
					return 0
				}
				rest = found[from>>6]
			}
			if from += bits.TrailingZeros64(rest); from >= to {
				return 0
			}
		}
		state = m.next[uint16(state)<<8|uint16(codes[from])]
	}
	return state
}

// Step returns the state behind codes that are met in a state; 0 is where a string begins. A code
// waits for the one before it, but processors begin the next string meanwhile: several at once,
// written out, were slower.
func (m *Matcher) Step(state uint8, codes []byte) uint8 {
	for _, c := range codes {
		state = m.next[uint16(state)<<8|uint16(c)]
	}
	return state
}

// Accepts reports whether a string that ends in a state is matched.
func (m *Matcher) Accepts(state uint8) bool { return m.accept[state] }

// Rows returns the automaton without gaps between its states, for a device: the next state by state<<8 | code, and
// which states accept. Nil where it has more than most states.
func (m *Matcher) Rows(most int) (next []uint8, accept []bool) {
	if 2*m.states > most {
		return nil, nil
	}
	escaped := patternStates/2 - m.states // so far the upper half moves
	for state := range 2 * m.states {
		from := state
		if state >= m.states {
			from += escaped
		}
		for _, to := range m.next[from<<8 : (from+1)<<8] {
			if to >= patternStates/2 {
				to -= uint8(escaped)
			}
			next = append(next, to)
		}
		accept = append(accept, m.accept[from])
	}
	return next, accept
}
