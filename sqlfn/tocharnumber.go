package sqlfn

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"pgaccel/vector"
)

// to_char of numbers, by PostgreSQL's formatting.c (NUM_processor): a pattern has a place for each digit, 9 or 0, commas
// between them, a point, and what is printed as it is.

// numberChars are functions that print numbers.
var numberChars = []Function{
	toCharNumberOf(1772, vector.Numeric, roundSamples, func(v vector.Value, decimals int) (string, bool) {
		d, ok := awayFromZero.decimal(v.Num, int64(decimals))
		return d.String(), ok
	}),
	toCharNumberOf(1773, vector.Int4, []string{"0", "1", "-1", "12", "485", "-485", "1234567", "2147483647", "-2147483648"}, integerPlaces),
	toCharNumberOf(1774, vector.Int8, []string{"0", "1", "-1", "12", "485", "-485", "1234567", "2147483648", "-9223372036854775808"}, integerPlaces),
	toCharNumberOf(1776, vector.Float8, append([]string{"0.1", "1.25", "-0.001", "99.995", "485.5", "123456789.125", "999999999999999", "1e15"}, floatSamples...), func(v vector.Value, decimals int) (string, bool) {
		f := math.Float64frombits(uint64(v.I))
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return "", false
		}
		// The server prints no more than 15 digits.
		return strconv.FormatFloat(f, 'f', decimals, 64), len(strconv.FormatFloat(math.Abs(f), 'f', 0, 64))+decimals <= 15
	}),
}

func integerPlaces(v vector.Value, decimals int) (string, bool) {
	s := strconv.FormatInt(v.I, 10)
	if decimals > 0 {
		s += "." + strings.Repeat("0", decimals)
	}
	return s, true
}

var numberPatterns = []string{"999999999", "FM999999999", "999,999,999", "FM999,999,999.00", "999,999,990.99", "FM999999990.0", "9.99", "FM9.99", "0.99", "FM0.99", "09999", "FM09999", "9099.9", "FM9090.90",
	"0", "9", "00", "FM00", "FM999.9990", "$9,999.99", "FM$9,990.0%", "99 99/99", "9,9,9.9", ",999", "FM,999", "999,", "FM9,", "9,990", "0,000,000.00", "FM9,.9", "9,.9"}

// maxPlaces bounds the digits of a pattern.
const maxPlaces = 30

// numberPattern is a pattern. Its places are 9 and 0 in whole, with commas and literals, and likewise in decimals.
type numberPattern struct {
	whole, decimals string
	point           bool
	compact         bool // FM: without the blanks of places that are not used, and without zeros at the end
}

// places returns how many digits a part of a pattern has, and the first and the last that is a 0; -1 for none.
func places(part string) (n, first, last int) {
	first, last = -1, -1
	for i := range len(part) {
		switch part[i] {
		case '0':
			if last = n; first < 0 {
				first = n
			}
			n++
		case '9':
			n++
		}
	}
	return n, first, last
}

// readNumberPattern reads a pattern. ok is false for one that is left to the server: with other keywords, among them those on
// whose meaning lc_numeric decides.
func readNumberPattern(text string) (p numberPattern, ok bool) {
	rest, compact := strings.CutPrefix(text, "FM")
	p.compact = compact
	for i := range len(rest) {
		if strings.IndexByte("0123456789,. $%/:()", rest[i]) < 0 || rest[i] > '0' && rest[i] < '9' {
			return p, false
		}
	}
	p.whole, p.decimals, p.point = strings.Cut(rest, ".")
	whole, _, _ := places(p.whole)
	decimals, _, _ := places(p.decimals)
	return p, whole > 0 && whole+decimals <= maxPlaces && (decimals > 0) == p.point && !strings.ContainsAny(p.decimals, ".,")
}

// print prints a number, which has as many decimals as the pattern.
func (p *numberPattern) print(number string) string {
	n, firstZero, _ := places(p.whole)
	number, negative := strings.CutPrefix(number, "-")
	whole, decimals, _ := strings.Cut(number, ".")
	blanks := n - len(whole)
	if blanks < 0 {
		whole, decimals, blanks = strings.Repeat("#", n), strings.Repeat("#", len(decimals)), 0
	}
	w := numberWriter{compact: p.compact, negative: negative}
	place := 0
	for i := range len(p.whole) {
		switch c := p.whole[i]; {
		case c == ',':
			w.comma()
			continue
		case c != '9' && c != '0':
			w.WriteByte(c)
			continue
		case place < blanks && (firstZero < 0 || place < firstZero):
			w.blank()
		case place < blanks:
			w.digit('0')
		case p.point && firstZero < 0 && whole == "0": // no zero before the point
			w.blank()
			if w.compact && p.shown(decimals) == "" {
				w.digit('0')
				w.within = false // no comma follows
			}
		default:
			w.digit(whole[place-blanks])
		}
		place++
	}
	if !p.point {
		return w.String()
	}
	w.digit('.')
	decimals = p.shown(decimals)
	place = 0
	for i := range len(p.decimals) {
		switch c := p.decimals[i]; {
		case c != '9' && c != '0':
			w.WriteByte(c)
			continue
		case place < len(decimals):
			w.WriteByte(decimals[place])
		}
		place++
	}
	return w.String()
}

// shown returns the decimals that are printed: with FM without the zeros at the end that stand for a 9.
func (p *numberPattern) shown(decimals string) string {
	if !p.compact {
		return decimals
	}
	_, _, last := places(p.decimals)
	return decimals[:max(last+1, len(strings.TrimRight(decimals, "0")))]
}

// numberWriter writes places. The sign, or a blank for it, stands before the first digit or point.
type numberWriter struct {
	strings.Builder
	compact, negative bool
	signed            bool // that is written
	within            bool // a digit was the last place
}

func (w *numberWriter) blank() {
	w.within = false
	if !w.compact {
		w.WriteByte(' ')
	}
}

func (w *numberWriter) digit(c byte) {
	if !w.signed {
		w.signed = true
		if w.negative {
			w.WriteByte('-')
		} else if !w.compact {
			w.WriteByte(' ')
		}
	}
	w.within = c != '.'
	w.WriteByte(c)
}

func (w *numberWriter) comma() {
	switch {
	case w.within:
		w.WriteByte(',')
	case !w.compact:
		w.WriteByte(' ')
	}
}

// toCharNumberOf is to_char of a kind of numbers. text writes one with so many decimals, and reports whether that is what the
// server prints.
func toCharNumberOf(oid uint32, k vector.Kind, samples []string, text func(v vector.Value, decimals int) (string, bool)) Function {
	return Function{
		Name: "to_char", OID: oid, Result: vector.Text,
		Args: []Param{{Kind: k}, {Kind: vector.Text, Constants: numberPatterns, Also: func(s string) bool {
			_, ok := readNumberPattern(s)
			return ok
		}}},
		Samples:  [][]string{slices.Clone(samples), nil},
		TotalFor: func(Call) bool { return k.IsInt() },
		Eval: func(args []vector.Value) (vector.Value, error) {
			p, ok := readNumberPattern(args[1].Str)
			if !ok {
				return vector.NullValue, failed("to_char() with this pattern")
			}
			decimals, _, _ := places(p.decimals)
			s, ok := text(args[0], decimals)
			if !ok {
				return vector.NullValue, failed("to_char() of this number")
			}
			return vector.Value{Str: p.print(s)}, nil
		},
	}
}
