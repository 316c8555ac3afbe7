package sqltype

import (
	"strconv"
	"strings"

	"pgaccel/vector"
)

const oidMoney = 790

// moneyType is held in the least unit, a hundredth. Both forms of text are those of lc_monetary C (MoneyIn), other than which
// decides how many decimals an amount has, too.
var moneyType = word(Type{Kind: vector.Money, Name: "money", OID: oidMoney, Category: 'N', Binary: BinaryInt8, AppendText: appendMoney,
	Samples: []string{"0", "1", "-1", "0.05", "-0.5", "999.99", "1000", "-1234.56", "1,234,567.89", "-123,456,789.01", "92233720368547758.07", "-92233720368547758.08"},
	Left:    []string{"", "-", "$", ".5", "1.", "1.005", "(1)", "+1", "- 1", "$-1", "1-", "1e3", "12,34", "1,2345", "1$", "92233720368547758.08", "1,", "1.0,0"},
}, parseMoney)

// MoneyIn reports whether amounts are read and written under a value of lc_monetary as under C: so they are in the United States.
func MoneyIn(locale string) bool {
	return locale == "C" || locale == "POSIX" || locale == "C.UTF-8" || locale == "C.utf8" || locale == "en_US.UTF-8" || locale == "en_US.utf8" || locale == "en_US"
}

// parseMoney reads digits, with commas before each three or without, and up to two behind a point. What cash_in
// (src/backend/utils/adt/cash.c) takes besides is for Postgres.
func parseMoney(s string) (cents int64, ok bool) {
	sign := ""
	if rest, negative := strings.CutPrefix(s, "-"); negative {
		sign, s = "-", rest
	}
	whole, decimals, pointed := strings.Cut(strings.TrimPrefix(s, "$"), ".")
	if pointed && decimals == "" || len(decimals) > 2 {
		return 0, false
	}
	groups := strings.Split(whole, ",")
	for i, g := range groups {
		if g == "" || len(groups) > 1 && len(g) > 3 || i > 0 && len(g) != 3 {
			return 0, false
		}
	}
	digits := strings.Join(groups, "") + (decimals + "00")[:2]
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return 0, false
		}
	}
	return parseInt(sign+digits, 64)
}

// appendMoney is cash_out: cents as dollars, with commas.
func appendMoney(dst []byte, cents int64) []byte {
	size := uint64(cents)
	if cents < 0 {
		dst, size = append(dst, '-'), -size
	}
	digits := strconv.FormatUint(size/100, 10)
	dst = append(dst, '$')
	for i := range len(digits) {
		if i > 0 && (len(digits)-i)%3 == 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, digits[i])
	}
	return appendTwoDigits(append(dst, '.'), int(size%100))
}
