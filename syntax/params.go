package syntax

import (
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// wordsBefore is how many words ReplaceParams shows.
const wordsBefore = 2

// ReplaceParams returns a text with its parameters replaced by what f makes of the number of each and of the two words
// before it, in lower case and "" where there are none: the nearest is last. f returns "" to leave one as it is.
// The text need not have a tree; one that has no tokens either is returned as it is.
func ReplaceParams(sql string, f func(number int, before [wordsBefore]string) string) string {
	tokens, refused := scan(sql)
	if refused != "" {
		return sql
	}
	var b strings.Builder
	var before [wordsBefore]string
	from := 0
	for _, t := range tokens {
		if t.Token == pg.Token_SQL_COMMENT || t.Token == pg.Token_C_COMMENT {
			continue
		}
		word := sql[t.Start:t.End]
		if t.Token == pg.Token_PARAM {
			number, _ := strconv.Atoi(word[1:])
			if constant := f(number, before); constant != "" {
				b.WriteString(sql[from:t.Start])
				b.WriteString(constant)
				from = int(t.End)
			}
		}
		copy(before[:], before[1:])
		before[wordsBefore-1] = strings.ToLower(word)
	}
	return b.String() + sql[from:]
}
