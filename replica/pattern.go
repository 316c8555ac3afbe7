package replica

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// patterns chooses tables by name: expressions over the schema's name, a zero byte, which no
// name has, and the table's.
type patterns struct {
	include, exclude *regexp.Regexp
	each             []pattern
	auto             bool
	chosen           map[string]bool // names, as the expressions are over, that auto stands for; Replicator.Choose
}

// autoPattern stands for the tables that whoever runs the Replicator chooses.
const autoPattern = "auto"

// pattern is one of them.
type pattern struct {
	text string
	name *regexp.Regexp
}

// parsePatterns reads patterns such as public.*, sales, public.line*, !public.log:
// a table is chosen that matches any without '!' and none with it. '*' stands for any
// characters and '?' for one; a pattern without a schema is of all. Names match as they
// are, or folded to lower case as SQL folds unquoted names. The word auto is no name.
func parsePatterns(texts []string) (p patterns, err error) {
	var include, exclude []string
	for _, text := range texts {
		for _, one := range strings.Split(text, ",") {
			if strings.TrimSpace(one) == autoPattern {
				p.auto = true
				continue
			}
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
			p.each = append(p.each, pattern{strings.TrimSpace(one), anyOf([]string{name, strings.ToLower(name)})})
		}
	}
	if len(include) == 0 && !p.auto {
		return p, fmt.Errorf("no table pattern: nothing to accelerate")
	}
	p.include, p.exclude = anyOf(include), anyOf(exclude)
	return p, nil
}

// CheckPatterns returns what is wrong with Config.Accelerate.
func CheckPatterns(texts []string) error {
	_, err := parsePatterns(texts)
	return err
}

// HasAuto reports whether auto is among the patterns.
func HasAuto(texts []string) bool {
	p, err := parsePatterns(texts)
	return err == nil && p.auto
}

// all has auto stand for all tables that are not excluded.
func (p patterns) all() patterns {
	if p.auto {
		p.include = anyOf([]string{"*\x00*"})
	}
	return p
}

// anyOf is the expression for names that match one of the patterns at least.
func anyOf(patterns []string) *regexp.Regexp {
	for i, p := range patterns {
		patterns[i] = strings.NewReplacer(`\*`, `[^\x00]*`, `\?`, `[^\x00]`).Replace(regexp.QuoteMeta(strings.ToValidUTF8(p, "\uFFFD")))
	}
	return regexp.MustCompile("^(" + strings.Join(patterns, "|") + ")$")
}

// unmatched returns those that match no relation of the database, as they were written.
func (p patterns) unmatched(ctx context.Context, conn *pgx.Conn) (texts []string, err error) {
	rows, err := conn.Query(ctx, "SELECT n.nspname, c.relname"+matchable)
	if err != nil {
		return nil, err
	}
	left := slices.Clone(p.each)
	var schema, name string
	_, err = pgx.ForEachRow(rows, []any{&schema, &name}, func() error {
		left = slices.DeleteFunc(left, func(one pattern) bool { return one.name.MatchString(schema + "\x00" + name) })
		return nil
	})
	for _, one := range left {
		texts = append(texts, one.text)
	}
	return texts, err
}

// match reports whether the table is chosen.
func (p patterns) match(schema, table string) bool {
	name := schema + "\x00" + table
	return (p.include.MatchString(name) || p.auto && p.chosen[name]) && !p.exclude.MatchString(name)
}

// byAuto reports whether the table is chosen by auto alone.
func (p patterns) byAuto(schema, table string) bool {
	return p.match(schema, table) && !p.include.MatchString(schema+"\x00"+table)
}
