package plan

import (
	"strings"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// ArrayMembers reads the text of an array of one dimension that begins at 1, as array_out (arrayfuncs.c) writes
// it; blanks around unquoted members are skipped, as array_in does. ok is false for any other text.
func ArrayMembers(text string, of vector.Type) (list []vector.Datum, ok bool) {
	s, open := strings.CutPrefix(text, "{")
	s, closed := strings.CutSuffix(s, "}")
	if !open || !closed {
		return nil, false
	}
	if strings.Trim(s, sqltype.Space) == "" {
		return nil, true
	}
	for more := true; more; {
		var member string
		quoted := false
		if strings.HasPrefix(s, `"`) {
			quoted = true
			if member, s, ok = quotedMember(s[1:]); !ok {
				return nil, false
			}
			if more = s != ""; more {
				if s, ok = strings.CutPrefix(s, ","); !ok {
					return nil, false
				}
			}
		} else {
			member, s, more = strings.Cut(s, ",")
			member = strings.Trim(member, sqltype.Space)
			if member == "" || strings.ContainsAny(member, `"\\{}`) {
				return nil, false
			}
		}
		if !quoted && strings.EqualFold(member, "NULL") {
			list = append(list, vector.Null(of))
			continue
		}
		if of.Kind.IsText() {
			list = append(list, vector.Datum{Type: of, Str: member})
			continue
		}
		d, read := sqltype.Of(of.Kind).Parse(member)
		if !read {
			return nil, false
		}
		d.Type = of
		list = append(list, d)
	}
	return list, true
}

// quotedMember reads a member behind its first quote, and returns what is behind its last.
func quotedMember(s string) (member, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			return b.String(), s[i+1:], true
		case '\\':
			if i++; i == len(s) {
				return "", "", false
			}
		}
		b.WriteByte(s[i])
	}
	return "", "", false
}
