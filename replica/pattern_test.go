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

// TestAutoPattern: auto stands for what is chosen, beside what patterns name and without what they leave out, and for all tables
// where it is asked what could be chosen.
func TestAutoPattern(t *testing.T) {
	p, err := parsePatterns([]string{"auto, facts.*", "!secret"})
	if err != nil || !HasAuto([]string{"auto"}) || HasAuto([]string{"*.auto", "!auto"}) || HasAuto([]string{"auto", "a.b.c"}) {
		t.Fatal(err)
	}
	p.chosen = map[string]bool{"public\x00a": true, "facts\x00b": true, "public\x00secret": true}
	for name, want := range map[[2]string][3]bool{ // matched, by auto alone, might be
		{"public", "a"}: {true, true, true}, {"facts", "b"}: {true, false, true}, {"facts", "c"}: {true, false, true}, {"public", "secret"}: {},
		{"public", "auto"}: {false, false, true},
	} {
		if got := [3]bool{p.match(name[0], name[1]), p.byAuto(name[0], name[1]), p.all().match(name[0], name[1])}; got != want {
			t.Errorf("%s.%s: %v, want %v", name[0], name[1], got, want)
		}
	}
	if len(p.each) != 2 {
		t.Errorf("%+v are looked for", p.each)
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
