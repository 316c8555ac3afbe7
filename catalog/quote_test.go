package catalog

import "testing"

func TestQuoting(t *testing.T) {
	for _, c := range []struct{ in, identifier, literal string }{
		{"", `""`, `''`},
		{"a", `"a"`, `'a'`},
		{`a"b'c\`, `"a""b'c\"`, `'a"b''c\'`},
		{`""''`, `"""""''"`, `'""'''''`},
	} {
		if got := QuoteIdentifier(c.in); got != c.identifier {
			t.Errorf("identifier %q: %s, want %s", c.in, got, c.identifier)
		}
		if got := QuoteLiteral(c.in); got != c.literal {
			t.Errorf("literal %q: %s, want %s", c.in, got, c.literal)
		}
	}
}
