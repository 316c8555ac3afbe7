package syntax

import "testing"

func TestReplaceParams(t *testing.T) {
	for _, c := range []struct{ sql, want string }{
		{"SELECT $1, date $2 FROM t WHERE a = /* $9 */ $10 AND b = '$3' AND \"$4\" = $2", "SELECT [1  select], date [2 , date] FROM t WHERE a = /* $9 */ $10 AND b = '$3' AND \"$4\" = [2 \"$4\" =]"},
		{"EXTRACT($1 FROM at)", "EXTRACT([1 extract (] FROM at)"},
		{"$1", "[1  ]"},
		{"", ""},
		{"SELECT 'open", "SELECT 'open"},
		{"SELECT $1 FROM (cut off", "SELECT [1  select] FROM (cut off"},
	} {
		got := ReplaceParams(c.sql, func(n int, before [2]string) string {
			if n == 10 {
				return ""
			}
			return "[" + string(rune('0'+n)) + " " + before[0] + " " + before[1] + "]"
		})
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.sql, got, c.want)
		}
	}
}
