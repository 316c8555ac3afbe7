package engine

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgaccel/internal/docpage"
	"pgaccel/plan"
)

// relations are those of the schema pgaccel, in the order of docs/views.md, with a row each.
var relations = []struct {
	name string
	row  any
}{
	{"tables", tableRow{}}, {"columns", columnRow{}}, {"queries", queryRow{}}, {"status", statusRow{}}, {"sessions", sessionRow{}}, {"devices", deviceRow{}},
}

func parsed(t *testing.T, path string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// cell writes a text as one of a table's cells.
func cell(text string) string { return strings.ReplaceAll(strings.TrimSpace(text), "|", `\|`) }

// fieldComments are the comments of the fields of all structs of the files, by struct and by field.
func fieldComments(t *testing.T, paths ...string) map[string]map[string]string {
	all := map[string]map[string]string{}
	for _, path := range paths {
		ast.Inspect(parsed(t, path), func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				all[spec.Name.Name] = map[string]string{}
				for _, f := range s.Fields.List {
					for _, id := range f.Names {
						all[spec.Name.Name][id.Name] = f.Comment.Text()
					}
				}
			}
			return true
		})
	}
	return all
}

// TestViewsPage: docs/views.md has each column of each relation, with its type, and what the row's field says of it.
func TestViewsPage(t *testing.T) {
	comments := fieldComments(t, "virtual.go", "status.go")
	if len(relations) != len(columns) {
		t.Errorf("%d relations are on the page, want %d", len(relations), len(columns))
	}
	for _, r := range relations {
		fields := map[string]string{} // comments, by the column's name
		row := reflect.TypeOf(r.row)
		for f := range row.Fields() {
			fields[f.Tag.Get("json")] = comments[row.Name()][f.Name]
		}
		b := &strings.Builder{}
		b.WriteString("| column | type | |\n|---|---|---|\n")
		for definition := range strings.SplitSeq(columns[r.name], ", ") {
			name, typ, _ := strings.Cut(strings.TrimPrefix(definition, `"`), `" `)
			if fields[name] == "" {
				t.Errorf("pgaccel.%s: nothing is said of %s", r.name, name)
			}
			fmt.Fprintf(b, "| `%s` | %s | %s |\n", name, typ, cell(fields[name]))
			delete(fields, name)
		}
		for name := range fields {
			t.Errorf("pgaccel.%s has no column %s", r.name, name)
		}
		docpage.Section(t, "views.md", r.name, b.String())
	}
}

// TestSettingsPage: docs/configuration.md has the settings of sessions, with their values.
func TestSettingsPage(t *testing.T) {
	b := &strings.Builder{}
	b.WriteString("| setting | values | default |\n|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		s := settings[name]
		values := "`" + strings.Join(s.values, "`, `") + "`"
		if s.values == nil {
			values = "a duration, such as `500ms` or `5s`; a number without a unit is milliseconds"
		}
		fmt.Fprintf(b, "| `pgaccel.%s` | %s | `%s` |\n", name, values, s.byDefault)
	}
	docpage.Section(t, "configuration.md", "settings", b.String())
}

// TestReasonsPage: docs/forwarding.md has each reason, what it means, and what would help.
func TestReasonsPage(t *testing.T) {
	b := &strings.Builder{}
	b.WriteString("| `reason` | what it means | `hint` |\n|---|---|---|\n")
	unknown := maps.Clone(hints)
	for _, d := range parsed(t, "../plan/reason.go").Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			if v.Comment.Text() == "" {
				t.Errorf("nothing is said of the reason %s", text)
			}
			hint := hints[plan.Reason(text)]
			if hint == "" {
				hint = "see `detail`"
			}
			delete(unknown, plan.Reason(text))
			fmt.Fprintf(b, "| %s | %s | %s |\n", text, cell(v.Comment.Text()), cell(hint))
		}
	}
	for reason := range unknown {
		t.Errorf("a hint for %q, which is no reason", reason)
	}
	docpage.Section(t, "forwarding.md", "reasons", b.String())
}
