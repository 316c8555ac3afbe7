package sqlfn

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgaccel/vector"
)

// TestPrefix: where a function says that its result is what a string begins with, it is, and the results of
// strings in the order of their bytes are in that order.
func TestPrefix(t *testing.T) {
	texts := append(slices.Clone(textSamples), "ab", "abc", "abd", "b", "żó", "żółw", "日本", "日木", "éa", "aé", "\U0010ffff", "\u07ff", "\u0800")
	slices.Sort(texts)
	calls := 0
	for i := range all {
		f := &all[i]
		if f.Prefix == nil {
			continue
		}
		lists := make([][]string, len(f.Args))
		for i := range f.Args {
			if lists[i] = samples(f, i); i == 0 {
				lists[i] = []string{"NULL"}
			}
		}
		combine(lists, func(choice []string) {
			args := make([]vector.Value, len(choice))
			site := Call{Args: make([]Arg, len(choice))}
			for i, c := range choice {
				site.Args[i].Type = vector.TypeOf(f.Args[i].Kind)
				if i > 0 {
					args[i] = parse(t, f.Args[i].Kind, c)
					site.Args[i].Const = &args[i]
				}
			}
			if !f.Prefix(site) {
				return
			}
			calls++
			before := ""
			for _, s := range texts {
				args[0] = vector.Value{Str: s}
				r, err := f.Apply(args)
				if what := fmt.Sprint(f.Name, choice[1:], s); err != nil || r.Null || !strings.HasPrefix(s, r.Str) || r.Str < before {
					t.Fatalf("%s is %q after %q: %v", what, r.Str, before, err)
				}
				before = r.Str
			}
		})
	}
	if calls < 20 {
		t.Errorf("%d calls", calls)
	}
}
