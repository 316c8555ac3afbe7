package catalog

import "strings"

// QuoteIdentifier quotes an identifier, needed or not.
func QuoteIdentifier(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

// QuoteLiteral quotes a string under standard_conforming_strings = on, which pgaccel's
// own connections set.
func QuoteLiteral(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
