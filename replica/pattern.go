package replica

import (
	"fmt"
	"strings"
)

// patterns chooses tables by name.
type patterns struct {
	include, exclude []pattern
}

// pattern is one "schema.table" with '*' for any characters and '?' for one. schema
// is "*" where the pattern names none. Names match as they are, or folded to lower
// case as SQL folds unquoted names.
type pattern struct {
	schema, table string
}

// parsePatterns reads patterns such as public.*, sales, public.line*, !public.log:
// a table is chosen that matches any without '!' and none with it.
func parsePatterns(texts []string) (patterns, error) {
	var p patterns
	for _, text := range texts {
		for _, one := range strings.Split(text, ",") {
			body, exclude := strings.CutPrefix(strings.TrimSpace(one), "!")
			schema, table, dotted := strings.Cut(body, ".")
			if !dotted {
				schema, table = "*", body
			}
			if schema == "" || table == "" || strings.Contains(table, ".") {
				return p, fmt.Errorf("table pattern %q: want schema.table, table, or !pattern; * and ? stand for any characters and one", one)
			}
			if exclude {
				p.exclude = append(p.exclude, pattern{schema, table})
			} else {
				p.include = append(p.include, pattern{schema, table})
			}
		}
	}
	if len(p.include) == 0 {
		return p, fmt.Errorf("no table pattern: nothing to accelerate")
	}
	return p, nil
}

// match reports whether the table is chosen.
func (p patterns) match(schema, table string) bool {
	return matchAny(p.include, schema, table) && !matchAny(p.exclude, schema, table)
}

func matchAny(list []pattern, schema, table string) bool {
	for _, q := range list {
		if q.match(schema, table) {
			return true
		}
	}
	return false
}

func (q pattern) match(schema, table string) bool {
	return glob(q.schema, schema) && glob(q.table, table) ||
		glob(strings.ToLower(q.schema), schema) && glob(strings.ToLower(q.table), table)
}

// glob matches name against pattern, '*' for any characters and '?' for one.
func glob(pattern, name string) bool {
	p, n := []rune(pattern), []rune(name)
	star, mark := -1, 0 // the last star, and where its match ends so far
	i, j := 0, 0
	for j < len(n) {
		switch {
		case i < len(p) && p[i] == '*':
			star, mark = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == n[j]):
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}
