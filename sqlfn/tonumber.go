package sqlfn

import (
	"strings"

	"pgaccel/vector"
)

// to_number of a text, by PostgreSQL's formatting.c (NUM_processor and NUM_numpart_from_char). The server reads texts that are laid out
// otherwise than their pattern in ways of its own: read here is what has its digits, commas and point where the pattern has them.

var textNumbers = []Function{{
	Name: "to_number", OID: 1777, Result: vector.Numeric, Partial: true,
	Args:    []Param{{Kind: vector.Text, Usual: toNumberSamples[:6]}, {Kind: vector.Text, Constants: toNumberPatterns, Also: takesNumberLayout}},
	Samples: [][]string{toNumberSamples, nil},
	Type:    func(Call) vector.Type { return vector.NumericType(vector.VaryingScale) },
	Eval:    toNumber,
}}

// numberLayout reads a pattern: the places before the point, with commas, and those behind it. Places are all alike when they are
// read. ok is false for one that is left to the server: under FM it loses digits of texts that have commas.
func numberLayout(pattern string) (whole, decimals string, ok bool) {
	whole, decimals, point := strings.Cut(pattern, ".")
	n := len(whole) + len(decimals)
	return whole, decimals, onlyOf(whole, "90,") && onlyOf(decimals, "90") && whole != "" && whole[0] != ',' && whole[len(whole)-1] != ',' && !strings.Contains(whole, ",,") &&
		point == (decimals != "") && n <= maxPlaces && n-strings.Count(whole, ",") <= vector.NumericMaxPrecision
}

func onlyOf(s, set string) bool { return strings.Trim(s, set) == "" }

func takesNumberLayout(pattern string) bool {
	_, _, ok := numberLayout(pattern)
	return ok
}

// toNumber reads a text by its pattern: as many decimals as the text has.
func toNumber(args []vector.Value) (vector.Value, error) {
	whole, decimals, ok := numberLayout(args[1].Str)
	digits, negative := strings.CutPrefix(args[0].Str, "-")
	before, behind, point := strings.Cut(digits, ".")
	if !ok || before == "" || !matchesLayout(before, whole) || len(behind) > len(decimals) || leadingDigits(behind) != len(behind) || point && decimals == "" {
		return vector.NullValue, failed("text that is not laid out as " + args[1].Str)
	}
	d, ok := vector.ParseDecimal(strings.ReplaceAll(before, ",", "") + "." + behind)
	if !ok {
		return vector.NullValue, failed("numeric beyond the bits that are held")
	}
	if negative {
		d.Unscaled = d.Unscaled.Neg()
	}
	return vector.Value{Num: d}, nil
}

// matchesLayout reports whether s has digits and commas where the end of whole has places and commas.
func matchesLayout(s, whole string) bool {
	if len(s) > len(whole) || s[0] == ',' {
		return false
	}
	for i, at := 0, len(whole)-len(s); i < len(s); i++ {
		if comma := whole[at+i] == ','; comma != (s[i] == ',') || !comma && (s[i] < '0' || s[i] > '9') {
			return false
		}
	}
	return true
}

var toNumberPatterns = []string{"999", "999,999", "999,999.99", "9", "9.99", "00000", "999999", "999999999999.9999", "9,999,999,999.99", "990.0", "0999", "0.000", "090,909.0990", "9,9", "99,9.9"}

var toNumberSamples = []string{"1", "12", "-12", "123,456", "1,234.50", "0.5", "123", "1234", "-1,234", "1,234", "12,345.6", "1234567", "0", "-0", "0.00", "-0.5", ".5", "1.", "1.999", "1.23456", "", " 12", "12 ", "+12", "12-", "1,23", "12,34", "1,2", "1,2.3", "-9,9", "1e3", "$5",
	"00012", "000,012.10", "999,999.99", "99999", "123456789012.1234", "1,234,567,890.12", "abc", "1 234", "1,,234", "1,234,567", "-123,456.7", "12.345,6"}
