package engine

import "bytes"

// Most statements that name an accelerated table are the application's own point
// queries and writes: a new text each time, because clients put values into it.
// Parsing each would cost more than Postgres needs to answer, so that two cheap looks
// come first: at the first keyword, and at the text without its constants, under
// which an earlier decision not to take such a statement is remembered.

// selects reports whether sql could be, hold, or end in, a SELECT: its first word is one
// that begins a query, COPY, DECLARE, EXPLAIN, or one that ODBC puts before a query (see RouteSplit).
func selects(sql string) bool {
	if i := skipSpace(sql, 0); i < len(sql) && sql[i] == '(' {
		return true
	}
	switch firstWord(sql) {
	case "select", "with", "values", "table", "begin", "start", "savepoint", "release", "set", "show", "copy", "declare", "explain", "":
		return true
	case "create", "insert":
		return writesRows(sql)
	}
	return false
}

// writesRows reports whether a CREATE or INSERT may be one that writes the rows of a SELECT: it has the word.
func writesRows(sql string) bool {
	for id := range identifiers([]byte(sql)) {
		if len(id) == len("select") && bytes.EqualFold(id, []byte("select")) {
			return true
		}
	}
	return false
}

// firstWord returns the first word of sql in lower case, or another word where that is a long one; "" for none.
func firstWord[T string | []byte](sql T) string {
	start := skipSpace(sql, 0)
	i := start
	for i < len(sql) && identifierByte[sql[i]] {
		i++
	}
	if i-start > len("savepoint") {
		return "another"
	}
	var lower [16]byte
	n := copy(lower[:], sql[start:i])
	for j := range n {
		lower[j] |= 0x20
	}
	return string(lower[:n])
}

// skipSpace returns the position of the first byte at or after i that is neither
// white space nor in a comment.
func skipSpace[T string | []byte](sql T, i int) int {
	for i < len(sql) {
		switch c := sql[i]; {
		case c == ' ' || '\t' <= c && c <= '\r':
			i++
		case c == '-' && i+1 < len(sql) && sql[i+1] == '-':
			for i < len(sql) && sql[i] != '\n' && sql[i] != '\r' {
				i++
			}
		case c == '/' && i+1 < len(sql) && sql[i+1] == '*':
			depth := 0
			for i < len(sql) {
				if i+1 < len(sql) && sql[i] == '/' && sql[i+1] == '*' {
					depth++
					i += 2
				} else if i+1 < len(sql) && sql[i] == '*' && sql[i+1] == '/' {
					depth--
					i += 2
					if depth == 0 {
						break
					}
				} else {
					i++
				}
			}
		default:
			return i
		}
	}
	return i
}

// stripConstants appends sql to dst with numbers and strings replaced by '?' and
// white space and comments by one blank. ok is false where that cannot be done
// without knowing the session's settings (a backslash in a plain string) or the text
// is malformed: then the text has to be parsed.
func stripConstants(dst []byte, sql string) (out []byte, ok bool) {
	for i := 0; i < len(sql); {
		c := sql[i]
		if c <= ' ' || c == '-' || c == '/' {
			if j := skipSpace(sql, i); j > i {
				i = j
				dst = append(dst, ' ')
				continue
			}
		}
		switch {
		case c == '\'':
			// E'...' and U&'...' have rules of their own.
			if n := len(dst); n > 0 && (identifierByte[dst[n-1]] || dst[n-1] == '&') {
				return dst, false
			}
			i++
			for {
				if i >= len(sql) || sql[i] == '\\' {
					return dst, false
				}
				if sql[i] == '\'' {
					i++
					if i >= len(sql) || sql[i] != '\'' {
						break
					}
				}
				i++
			}
			dst = append(dst, '?')
		case c == '"':
			start := i
			for i++; i < len(sql) && sql[i] != '"'; i++ {
			}
			if i >= len(sql) {
				return dst, false
			}
			i++
			dst = append(dst, sql[start:i]...)
		case '0' <= c && c <= '9' || c == '.' && i+1 < len(sql) && '0' <= sql[i+1] && sql[i+1] <= '9':
			for i < len(sql) && (identifierByte[sql[i]] || sql[i] == '.') {
				i++
			}
			dst = append(dst, '?')
		case c == '$':
			// $1 is a parameter; anything else may begin a dollar-quoted string.
			start := i
			for i++; i < len(sql) && '0' <= sql[i] && sql[i] <= '9'; i++ {
			}
			if i == start+1 {
				return dst, false
			}
			dst = append(dst, sql[start:i]...)
		case identifierByte[c]:
			start := i
			for i < len(sql) && identifierByte[sql[i]] {
				i++
			}
			dst = append(dst, sql[start:i]...)
		default:
			dst = append(dst, c)
			i++
		}
	}
	return dst, true
}
