package replica

import "testing"

func TestPatterns(t *testing.T) {
	p, err := parsePatterns([]string{"public.*", "sales", "Mart.Fact_?", "!public.log*", "a.b, c.d"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[[2]string]bool{
		{"public", "orders"}: true, {"public", "log"}: false, {"public", "logs"}: false, {"public", "catalog"}: true,
		{"other", "sales"}: true, {"other", "sales2"}: false, {"mart", "fact_1"}: true, {"Mart", "Fact_1"}: true,
		{"mart", "fact_12"}: false, {"a", "b"}: true, {"c", "d"}: true, {"a", "d"}: false,
	} {
		if got := p.match(name[0], name[1]); got != want {
			t.Errorf("%s.%s: %v, want %v", name[0], name[1], got, want)
		}
	}
	for _, bad := range [][]string{nil, {""}, {"!x"}, {"a."}, {".b"}, {"a.b.c"}} {
		if _, err := parsePatterns(bad); err == nil {
			t.Errorf("patterns %q were accepted", bad)
		}
	}
}

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "abc", true}, {"a*c", "abc", true}, {"a*c", "abcd", false},
		{"a*b*c", "aXbYbZc", true}, {"*b", "aab", true}, {"?", "", false}, {"?", "é", true}, {"a?c", "abc", true}, {"**", "x", true},
		{"a*", "b", false}, {"a\xff*", "ab", false}, {"ab", "a", false},
	} {
		if got := anyOf([]string{c.pattern}).MatchString(c.name); got != c.want {
			t.Errorf("%q matches %q: = %v", c.pattern, c.name, got)
		}
	}
}
