package replica

import (
	"fmt"
	"regexp"
	"strings"
)

// patterns chooses tables by name: expressions over the schema's name, a zero byte, which no
// name has, and the table's.
type patterns struct {
	include, exclude *regexp.Regexp
}

// parsePatterns reads patterns such as public.*, sales, public.line*, !public.log:
// a table is chosen that matches any without '!' and none with it. '*' stands for any
// characters and '?' for one; a pattern without a schema is of all. Names match as they
// are, or folded to lower case as SQL folds unquoted names.
func parsePatterns(texts []string) (p patterns, err error) {
	var include, exclude []string
	for _, text := range texts {
		for _, one := range strings.Split(text, ",") {
			body, excluded := strings.CutPrefix(strings.TrimSpace(one), "!")
			schema, table, dotted := strings.Cut(body, ".")
			if !dotted {
				schema, table = "*", body
			}
			if schema == "" || table == "" || strings.Contains(table, ".") {
				return p, fmt.Errorf("table pattern %q: want schema.table, table, or !pattern; * and ? stand for any characters and one", one)
			}
			name := schema + "\x00" + table
			list := &include
			if excluded {
				list = &exclude
			}
			*list = append(*list, name, strings.ToLower(name))
		}
	}
	if len(include) == 0 {
		return p, fmt.Errorf("no table pattern: nothing to accelerate")
	}
	return patterns{anyOf(include), anyOf(exclude)}, nil
}

// anyOf is the expression for names that match one of the patterns at least.
func anyOf(patterns []string) *regexp.Regexp {
	for i, p := range patterns {
		patterns[i] = strings.NewReplacer(`\*`, `[^\x00]*`, `\?`, `[^\x00]`).Replace(regexp.QuoteMeta(strings.ToValidUTF8(p, "\uFFFD")))
	}
	return regexp.MustCompile("^(" + strings.Join(patterns, "|") + ")$")
}

// match reports whether the table is chosen.
func (p patterns) match(schema, table string) bool {
	name := schema + "\x00" + table
	return p.include.MatchString(name) && !p.exclude.MatchString(name)
}
