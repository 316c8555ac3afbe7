package catalog

import "strings"

// QuoteIdentifier quotes an identifier, needed or not.
func QuoteIdentifier(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

// QuoteIfNeeded quotes an identifier as quote_ident does, except that it does not know
// the keywords: a difference in the gate only forwards.
func QuoteIfNeeded(s string) string {
	plain := s != "" && (s[0] == '_' || 'a' <= s[0] && s[0] <= 'z')
	for i := 0; i < len(s) && plain; i++ {
		plain = s[i] == '_' || 'a' <= s[i] && s[i] <= 'z' || '0' <= s[i] && s[i] <= '9'
	}
	if plain {
		return s
	}
	return QuoteIdentifier(s)
}

// QuoteLiteral quotes a string under standard_conforming_strings = on, which pgaccel's
// own connections set.
func QuoteLiteral(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// QuoteAnyLiteral quotes a string under any standard_conforming_strings, as sessions of clients may have it.
func QuoteAnyLiteral(s string) string {
	if strings.Contains(s, `\`) {
		return "E" + QuoteLiteral(strings.ReplaceAll(s, `\`, `\\`))
	}
	return QuoteLiteral(s)
}
