package catalog

import (
	"slices"
	"testing"
)

func TestEnumRanks(t *testing.T) {
	e := &Enum{OID: 20000, Labels: []Label{{1, 7, "z"}, {2, 7, "a b"}, {5, 8, "é"}, {3, 7, "b"}}}
	for _, c := range []struct {
		labels []string
		want   []int32
	}{
		{nil, []int32{}},
		{[]string{"b"}, []int32{0}},
		{[]string{"b", "z", "é", "a b"}, []int32{3, 0, 2, 1}},
		{[]string{"b", "z"}, []int32{1, 0}},
		{[]string{"b", "none"}, nil},
	} {
		if got := e.Ranks(c.labels); !slices.Equal(got, c.want) || (got == nil) != (c.want == nil) {
			t.Errorf("%q: %v, want %v", c.labels, got, c.want)
		}
	}
	if !e.Has("a b") || e.Has("a") {
		t.Error("Has")
	}
}

func TestSameLabels(t *testing.T) {
	table := func(e *Enum) *Table { return &Table{Columns: []Column{{Name: "x"}, {Name: "e", Enum: e}}} }
	old := &Enum{OID: 20000, Labels: []Label{{1, 7, "a"}, {2, 7, "b"}}}
	for _, c := range []struct {
		name string
		now  *Enum
		same bool
	}{
		{"as it was", &Enum{OID: 20000, Labels: []Label{{1, 7, "a"}, {2, 7, "b"}}}, true},
		{"the type renamed", &Enum{OID: 20000, Name: "other", Labels: old.Labels}, true},
		{"added", &Enum{OID: 20000, Labels: []Label{{4, 9, "first"}, {1, 7, "a"}, {5, 9, "c"}, {2, 7, "b"}}}, true},
		{"renamed", &Enum{OID: 20000, Labels: []Label{{1, 7, "a"}, {2, 9, "c"}}}, false},
		{"renamed and back", &Enum{OID: 20000, Labels: []Label{{1, 7, "a"}, {2, 9, "b"}}}, false},
		{"names changed places", &Enum{OID: 20000, Labels: []Label{{1, 9, "b"}, {2, 9, "a"}}}, false},
		{"another order", &Enum{OID: 20000, Labels: []Label{{2, 7, "b"}, {1, 7, "a"}}}, false},
		{"one is gone", &Enum{OID: 20000, Labels: []Label{{1, 7, "a"}}}, false},
		{"another type", &Enum{OID: 20001, Labels: old.Labels}, false},
		{"no enum", nil, false},
	} {
		if got := SameLabels(table(old), table(c.now)); got != c.same {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
