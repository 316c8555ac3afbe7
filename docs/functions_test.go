package docs

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"pgaccel/catalog"
	"pgaccel/olap"
	"pgaccel/plan"
	"pgaccel/pushdown"
	"pgaccel/sqlfn"
	"pgaccel/sqltype"
	"pgaccel/syntax"
	"pgaccel/vector"
)

// ledger says of signatures whether they are answered, by planning calls of them.
type ledger struct {
	cat    *catalog.Catalog
	exact  int
	asked  int
	server int
}

// newLedger has the table of everyKind with arrays beside: column aN of the kind N.
func newLedger() *ledger {
	cat, kinds := everyKind()
	t := cat.Tables[0]
	for _, k := range kinds {
		if a := vector.ArrayOf(k); a != vector.Invalid {
			typ := vector.TypeOf(a)
			typ.Collation = t.Columns[slices.IndexFunc(t.Columns, func(c catalog.Column) bool { return c.Type.Kind == k })].Type.Collation
			t.Columns = append(t.Columns, catalog.Column{Name: fmt.Sprintf("a%d", k), AttNum: int16(len(t.Columns) + 1), TypeOID: sqltype.OID(a), Type: typ})
		}
	}
	return &ledger{cat: cat}
}

// signature is a line of signatures.txt.
type signature struct {
	version, what, name string
	args                []string
	result              string
}

func readSignatures(t *testing.T) (list []signature) {
	text, err := os.ReadFile("testdata/signatures.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		s := signature{version: f[0], what: f[1], name: f[2], result: f[4]}
		if args := strings.Trim(f[3], "()"); args != "" {
			s.args = strings.Split(args, ",")
		}
		list = append(list, s)
	}
	return list
}

var kindsByTypname = func() map[string]vector.Kind {
	m := map[string]vector.Kind{}
	for _, k := range vector.Kinds() {
		m[sqltype.Of(k).Name] = k
		if a := vector.ArrayOf(k); a != vector.Invalid {
			m[sqltype.Of(k).Name+"[]"] = a
		}
	}
	return m
}()

// instances are the kinds that stand for a signature's polymorphic types, Invalid where it has none.
func (s *signature) instances() []vector.Kind {
	var of []vector.Kind
	for _, a := range s.args {
		switch a {
		case "anyenum":
			return []vector.Kind{vector.Enum}
		case "anyarray", "anycompatiblearray", "anyelement", "anycompatible", "anynonarray", "anycompatiblenonarray", "any":
			of = vector.Kinds()
		}
	}
	if slices.ContainsFunc(s.args, func(a string) bool { return strings.HasSuffix(a, "array") && !strings.HasSuffix(a, "nonarray") }) {
		of = slices.DeleteFunc(of, func(k vector.Kind) bool { return vector.ArrayOf(k) == vector.Invalid })
	}
	if of == nil {
		return []vector.Kind{vector.Invalid}
	}
	return of
}

// kindOfArgument is the kind of an argument in an instance.
func kindOfArgument(typname string, of vector.Kind) vector.Kind {
	switch typname {
	case "anyarray", "anycompatiblearray":
		return vector.ArrayOf(of)
	case "anyenum", "anyelement", "anycompatible", "anynonarray", "anycompatiblenonarray", "any":
		return of
	}
	return kindsByTypname[typname]
}

// columnOf is SQL for a value of a kind that differs from row to row.
func columnOf(k vector.Kind) string {
	switch {
	case k == vector.Interval:
		return fmt.Sprintf("(k%d - k%d)", vector.Timestamp, vector.Timestamp)
	case k.IsArray():
		return fmt.Sprintf("a%d", k.Element())
	}
	return ofKind(k)
}

// constantsOf are SQL for constants of a kind that may stand for an argument of a function.
func constantsOf(name string, i int, k vector.Kind) (list []string) {
	for _, f := range sqlfn.Named(name) {
		if i < len(f.Args) && f.Args[i].Constants != nil && !f.Args[i].Interval {
			if c := "'" + f.Args[i].Constants[0] + "'"; !slices.Contains(list, c) {
				list = append(list, c)
			}
		}
	}
	switch {
	case k == vector.Interval:
		list = append(list, "interval '1 day'")
	case k.IsArray():
		element := sqltype.Of(k.Element())
		list = append(list, fmt.Sprintf("'{%s}'::%s[]", strings.Trim(element.Samples[0], " "), element.Name))
	case k == vector.Enum:
		list = append(list, "'a'::k")
	case k.IsText():
		list = append(list, "'a'::"+sqltype.Of(k).Name, "'a'", "'i'", "'{a}'")
	case k == vector.JSONB:
		list = append(list, "'{}'::jsonb")
	default:
		e := sqltype.Of(k)
		for _, s := range e.Samples[:min(2, len(e.Samples))] {
			list = append(list, fmt.Sprintf("'%s'::%s", s, e.Name))
		}
		if k.IsInt() || k == vector.Numeric || k.IsFloat() {
			list = append(list, "1")
		}
	}
	return list
}

// call writes a call of the signature.
func (s *signature) call(args []string) string {
	switch {
	case s.what == "cast":
		return args[0] + "::" + s.result
	case s.what == "operator" && len(args) == 1:
		return s.name + " " + args[0]
	case s.what == "operator":
		return args[0] + " " + s.name + " " + args[1]
	case s.what == "aggregate" && slices.Contains([]string{"percentile_cont", "percentile_disc", "mode"}, s.name):
		last := len(args) - 1
		return s.name + "(" + strings.Join(args[:last], ", ") + ") WITHIN GROUP (ORDER BY " + args[last] + ")"
	case s.what == "aggregate" && len(args) == 0:
		return s.name + "(*)"
	case s.name == "array_agg" || s.name == "string_agg":
		return s.name + "(" + strings.Join(args, ", ") + " ORDER BY " + args[0] + ")"
	}
	return catalog.QuoteIdentifier(s.name) + "(" + strings.Join(args, ", ") + ")"
}

// ask plans an expression: the reason is "" where it is answered here.
func (l *ledger) ask(expr string) (reason string) {
	st := pushdown.Plan(syntax.Parse("SELECT "+expr+" FROM t"), nil, l.cat)
	var f *plan.Forward
	switch {
	case st.Star == nil:
		f = st.Forward
	default:
		if err := olap.Supports(st.Star); err != nil {
			return err.Error()
		}
		return ""
	}
	if f == nil {
		return "forwarded"
	}
	if f.Detail != "" {
		return f.Detail
	}
	return string(f.Reason)
}

// state says how one instance of a signature is answered, and "" and why where it is not.
func (l *ledger) state(s *signature, of vector.Kind) (state, reason string) {
	n := len(s.args)
	kinds := make([]vector.Kind, n)
	for i, a := range s.args {
		kinds[i] = kindOfArgument(a, of)
	}
	// Calls of few constants first, so that as little as can be is said to be constant.
	for constants := range n + 1 {
		if constants > 2 && constants < n {
			continue
		}
		for mask := range 1 << n {
			var at []string
			lists := make([][]string, n)
			for i, k := range kinds {
				lists[i] = []string{columnOf(k)}
				if mask>>i&1 != 0 {
					lists[i], at = constantsOf(s.name, i, k), append(at, fmt.Sprint(i+1))
				}
			}
			if len(at) != constants {
				continue
			}
			why, ok := l.anyOf(s, lists)
			switch {
			case ok && constants == 0 && (n > 0 || s.what == "aggregate"):
				return "exact", ""
			case ok && constants == n:
				return "of constants, by the server", ""
			case ok:
				return "exact, constant " + strings.Join(at, ", "), ""
			}
			if constants == 0 {
				reason = why
			}
		}
	}
	return "", reason
}

// anyOf asks for calls with one of each list until one is answered.
func (l *ledger) anyOf(s *signature, lists [][]string) (reason string, ok bool) {
	args := make([]string, len(lists))
	var next func(i int) bool
	next = func(i int) bool {
		if i == len(lists) {
			why := l.ask(s.call(args))
			if reason == "" {
				reason = why
			}
			return why == ""
		}
		for _, e := range lists[i] {
			if args[i] = e; next(i + 1) {
				return true
			}
		}
		return false
	}
	ok = next(0)
	return reason, ok
}

// stateOf says how a signature is answered, for all of its instances.
func (l *ledger) stateOf(s *signature) string {
	var states []string
	kinds := map[string][]string{}
	reason := ""
	instances := s.instances()
	for _, of := range instances {
		l.asked++
		state, why := l.state(s, of)
		switch {
		case state == "":
			reason = why
			continue
		case strings.HasPrefix(state, "exact"):
			l.exact++
		default:
			l.server++
		}
		if kinds[state] == nil {
			states = append(states, state)
		}
		name := ""
		if of != vector.Invalid {
			name = of.String()
		}
		kinds[state] = append(kinds[state], name)
	}
	for i, state := range states {
		if len(kinds[state]) < len(instances) {
			states[i] += ": " + strings.Join(kinds[state], ", ")
		}
	}
	text := strings.Join(states, "; ")
	if text == "" {
		text = "forwarded: " + reason
	}
	return text
}

// shown is a signature as the page has it.
func (s *signature) shown() string {
	shown := s.name + "(" + strings.Join(s.args, ", ") + ")"
	switch s.what {
	case "cast":
		shown = s.args[0] + "::" + s.result
	case "operator":
		shown = s.call(s.args)
	}
	shown = "`" + strings.ReplaceAll(shown, "|", "\\|") + "`"
	if s.version != "15" {
		shown += " of version " + s.version
	}
	return shown
}

// row is of signatures of one name, or casts of one type, that are answered alike.
type row struct {
	name, state string
	signatures  []string
}

// rows asks for all signatures of a sort.
func (l *ledger) rows(list []signature, what string) (rows []row) {
	for _, s := range list {
		if s.what != what {
			continue
		}
		name, state := s.name, l.stateOf(&s)
		if what == "cast" {
			name = s.args[0]
		}
		i := slices.IndexFunc(rows, func(r row) bool { return r.name == name && r.state == state })
		if i < 0 {
			i, rows = len(rows), append(rows, row{name: name, state: state})
		}
		rows[i].signatures = append(rows[i].signatures, s.shown())
	}
	return rows
}

func (l *ledger) page(t *testing.T) string {
	list := readSignatures(t)
	tables := &strings.Builder{}
	totals := &strings.Builder{}
	for _, what := range []string{"function", "operator", "cast", "aggregate"} {
		before := *l
		fmt.Fprintf(tables, "\n## %ss\n\n| signatures | |\n|---|---|\n", strings.ToUpper(what[:1])+what[1:])
		for _, r := range l.rows(list, what) {
			fmt.Fprintf(tables, "| %s | %s |\n", strings.Join(r.signatures, ", "), strings.ReplaceAll(r.state, "|", "\\|"))
		}
		fmt.Fprintf(totals, "| %ss | %d | %d | %d |\n", what, l.asked-before.asked, l.exact-before.exact, l.server-before.server)
	}
	return "# Signatures\n\nWritten by `go test ./docs -update`, which plans a call of each signature in `testdata/signatures.txt`: the functions, operators, casts and aggregates of PostgreSQL\n" +
		"that are neither volatile nor of sets, of the types of [sql.md](sql.md) and their arrays. Exact: answered from columns (where a row needs the server, as with an overflow, the statement is\n" +
		"forwarded); \"constant 2\": the second argument must be one, often of certain forms. By the server: constants before each execution. A polymorphic signature counts once for each type.\n\n" +
		"| | signatures | exact | of constants |\n|---|---|---|---|\n" + totals.String() + fmt.Sprintf("| all | %d | %d | %d |\n", l.asked, l.exact, l.server) + tables.String()
}

// TestFunctions compares functions.md with what is planned.
func TestFunctions(t *testing.T) {
	l := newLedger()
	want := l.page(t)
	t.Logf("%d of %d signatures are exact, %d of constants", l.exact, l.asked, l.server)
	if *update {
		if err := os.WriteFile("functions.md", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile("functions.md"); err != nil || string(got) != want {
		t.Errorf("functions.md is not what is planned (go test ./docs -update): %v", err)
	}
}
