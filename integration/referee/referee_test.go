package referee

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgaccel/catalog"
	"pgaccel/internal/pgserver"
	"pgaccel/plan"
	"pgaccel/pushdown"
	"pgaccel/sqlfn"
	"pgaccel/sqltype"
	"pgaccel/syntax"
	"pgaccel/vector"
)

// TestRandomQueries asks a fixed number of questions. `make referee` asks more.
func TestRandomQueries(t *testing.T) {
	n := 1500
	if testing.Short() {
		n = 1000
	}
	for _, o := range []Options{{Seed: 1, Queries: n, Changes: 10}, {Seed: 2, Queries: n, Collation: "icu"},
		{Seed: 3, Queries: n, Changes: 10, Collation: "en_US.UTF-8"}, {Seed: 4, Queries: n / 2, Collation: "ci"}} {
		o.Outside, o.Literals, o.Limits, o.Blocks = 2, 15, 20, 40
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		defer cancel()
		o.Out = t.Output()
		r, err := Run(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range r.Differences {
			t.Errorf("seed %d: difference:\n%s", o.Seed, d)
		}
		if r.Share() < o.LeastShare() {
			t.Errorf("seed %d: %.1f %% of the queries were accelerated, want %.0f %%", o.Seed, 100*r.Share(), 100*o.LeastShare())
		}
	}
}

// TestMissingLocale: a locale that the machine lacks is named, with what makes it.
func TestMissingLocale(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	pg, err := pgserver.Start(ctx, pgserver.Options{Locale: "xx_XX.UTF-8"})
	if err == nil {
		pg.Stop()
		t.Fatal("a server started in a locale that does not exist")
	}
	if err = explainLocale("xx_XX.UTF-8", err); !strings.Contains(err.Error(), "xx_XX.UTF-8 is missing on this machine: scripts/install-deps.sh test") {
		t.Errorf("the error is %v", err)
	}
	if _, err := Run(ctx, Options{Collation: "latin", Out: t.Output()}); err == nil || !strings.Contains(err.Error(), `there is no collation "latin"`) {
		t.Errorf("a collation that there is not: %v", err)
	}
}

// emulatorProgram builds the worker with an emulated device.
func emulatorProgram(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pgaccel-gpu-emu")
	if out, err := exec.Command("go", "build", "-tags", "emu", "-o", path, "pgaccel/cmd/pgaccel-gpu").CombinedOutput(); err != nil {
		t.Fatalf("go build -tags emu: %v\n%s", err, out)
	}
	return path
}

// TestRandomQueriesOnDevice asks some of an emulated device. Most are a kernel of their own,
// which takes a C++ compiler a second.
func TestRandomQueriesOnDevice(t *testing.T) {
	n := 400
	if testing.Short() {
		n = 150
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	program := emulatorProgram(t)
	for _, memory := range []int64{0, 200_000} { // in which many tables do not fit, with most seeds
		asked, onDevice, streamed, narrowed := 0, 0, 0, 0
		for seed := uint64(2); asked == 0 || memory > 0 && streamed < n/50 && seed < 6; seed++ {
			r, err := Run(ctx, Options{Seed: seed, Queries: n, Sessions: 2, Changes: 10, Eager: true, Device: "emu", DeviceMemory: memory, DeviceWorker: program, Out: t.Output()})
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range r.Differences {
				t.Errorf("%d bytes: difference:\n%s", memory, d)
			}
			asked, onDevice, streamed = asked+n, onDevice+r.OnDevice, streamed+r.Streamed
			narrowed += r.Narrowed
		}
		if memory == 0 && narrowed < asked/50 {
			t.Errorf("indexes were asked by %d of %d queries", narrowed, asked)
		}
		if onDevice < asked/5 || memory > 0 && streamed < n/50 {
			t.Errorf("%d bytes: the device ran %d of %d queries, %d streamed", memory, onDevice, asked, streamed)
		}
	}
}

// TestCorpus asks what was once answered wrongly: one file a case.
func TestCorpus(t *testing.T) { testCorpus(t, Options{}) }

// TestCorpusEager asks the same of small tables that take the paths of large ones.
func TestCorpusEager(t *testing.T) { testCorpus(t, Options{Eager: true}) }

// TestCorpusOnDevice asks the same of an emulated device.
func TestCorpusOnDevice(t *testing.T) {
	testCorpus(t, Options{Eager: true, Device: "emu", DeviceWorker: emulatorProgram(t)})
}

func testCorpus(t *testing.T, o Options) {
	files, err := filepath.Glob("testdata/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	defer cancel()
	errs := &errorLog{}
	o.Log = errs.logger()
	stacks := map[string]*stack{}
	defer func() {
		for _, st := range stacks {
			st.stop()
		}
	}()
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".sql"), func(t *testing.T) {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			// Tables of one case must not be taken for those of another.
			prefix := "rf" + strings.ReplaceAll(strings.TrimSuffix(filepath.Base(f), ".sql"), "-", "_")
			s, err := parseScript(regexp.MustCompile(`\bt_([a-z])`).ReplaceAllString(string(text), prefix+"_$1"))
			if err != nil {
				t.Fatal(err)
			}
			st := stacks[s.collation]
			if st == nil {
				o.Collation = s.collation
				if st, err = startStack(ctx, o); err != nil {
					t.Fatal(err)
				}
				stacks[s.collation] = st
			}
			d, accelerated, err := st.play(ctx, s, prefix)
			switch {
			case err != nil:
				t.Fatal(err)
			case d != "":
				t.Errorf("pgaccel's answer: %s", d)
			case s.accelerated && !accelerated:
				t.Error("it was forwarded")
			}
		})
	}
	for _, e := range errs.take() {
		t.Errorf("pgaccel's log: %s", e)
	}
}

func TestScriptsComeBackAsWritten(t *testing.T) {
	v := "it's; a\nvalue"
	s := &script{head: []string{"what"}, collation: "icu", setup: []string{"CREATE TABLE t_f (a text)", "INSERT INTO t_f VALUES\n ('it''s;\n\n')"}, changes: []string{"DELETE FROM t_f"},
		settings: []string{"SET TimeZone = 'UTC'"}, p: protocol{extended: true, times: 1, formats: []int16{1, 0}}, bounds: []bound{{value: &v, oid: 25}, {}}, accelerated: true, sql: "SELECT a\nFROM t_f"}
	v = "it's; a value" // a comment is one line
	back, err := parseScript(s.String())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := back.String(), s.String(); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// planned makes what the generator writes into plans, without a server.
type planned struct {
	ops map[plan.Op]int
	// functions that are called, by OID.
	functions map[uint32]int
	aggs      map[*sqlfn.Aggregate]int
	joins     map[plan.JoinKind]int
	forms     map[string]int // of queries and aggregates
	text      strings.Builder
	taken     int
}

func planMany(n int) *planned {
	p := &planned{ops: map[plan.Op]int{}, functions: map[uint32]int{}, aggs: map[*sqlfn.Aggregate]int{}, joins: map[plan.JoinKind]int{}, forms: map[string]int{}}
	p.more(0, n, nil)
	return p
}

// more plans n queries of seeds from one on, which call some functions above all.
func (p *planned) more(from uint64, n int, prefer []sqlfn.Function) {
	w := world{collations: []string{`"C"`}}
	for seed := from; seed < from+uint64(n/200); seed++ {
		r := rand.New(rand.NewPCG(seed, 0))
		s := randomSchema(r, "rf", w)
		cat := catalogOf(s)
		g := &gen{r: r, utc: true, prefer: prefer}
		for range 200 {
			g.params = r.IntN(2) == 0
			q := g.randomQuery(s)
			if r.IntN(2) == 0 {
				q = g.treeQuery(s)
			}
			sql, bounds := q.sql(g.params)
			var oids []uint32
			for _, b := range bounds {
				oids = append(oids, b.oid)
			}
			st := pushdown.Plan(syntax.Parse(sql), oids, cat)
			if st.Star == nil {
				continue
			}
			p.taken++
			p.text.WriteString(strings.ToLower(sql) + "\n")
			for form, text := range map[string]string{"WITH": "WITH ", "LATERAL": "LATERAL (", "a query shown by another": ") AS w"} {
				if strings.Contains(sql, text) {
					p.forms[form]++
				}
			}
			for _, form := range formsOf(sql) {
				p.forms[form]++
			}
			st.Star.Walk(p.add)
		}
	}
}

func (p *planned) add(q *plan.Star) {
	walk := func(es ...plan.Expr) {
		for _, e := range es {
			plan.Walk(e, func(x plan.Expr) bool {
				if c, ok := x.(*plan.Call); ok {
					p.ops[c.Op]++
					if c.Func != nil {
						p.functions[c.Func.OID]++
					}
				}
				return true
			})
		}
	}
	note := func(form string, is bool) {
		if is {
			p.forms[form]++
		}
	}
	note("grouping sets", q.Sets != nil)
	note("an empty set", slices.Contains(q.Sets, 0))
	note("sums of floats", q.AddsFloats())
	for _, e := range q.Output {
		_, is := e.(*plan.Grouping)
		note("GROUPING", is)
	}
	for _, j := range q.Joins {
		note("a join on no unique key", j.Many)
		p.joins[j.Kind]++
		walk(j.Outer...)
		walk(j.On...)
	}
	walk(q.Filter...)
	walk(q.Group...)
	walk(q.Having...)
	walk(q.Output...)
	for _, o := range q.Order {
		walk(o.Expr)
	}
	for _, a := range q.Aggs {
		p.aggs[a.Func]++
		note("DISTINCT in an aggregate", a.Distinct)
		note("a percentile of descending values", a.Desc)
		walk(a.Arg, a.Filter)
	}
}

// catalogOf is the catalog that a replica would read of the schema.
func catalogOf(s *schema) *catalog.Catalog {
	shade := &catalog.Enum{OID: 19999, Schema: "public", Name: "shade"}
	for i, l := range enum.entry().Samples {
		shade.Labels = append(shade.Labels, catalog.Label{OID: uint32(19000 + i), Text: l})
	}
	c := &catalog.Catalog{Shadowed: map[string]bool{}, Enums: []*catalog.Enum{shade}}
	for i, t := range s.tables {
		m := &catalog.Table{OID: uint32(20000 + i), Schema: s.name, Name: t.name, Rows: int64(len(t.rows))}
		for j, col := range t.cols {
			v, oid := vector.TypeOf(vector.Kind(col.t.kind)), uint32(0)
			if col.t.kind != opaque {
				oid = col.t.kind.oid()
			}
			var labels *catalog.Enum
			if col.t.kind == enum {
				labels, oid = c.Enums[0], c.Enums[0].OID
				v = vector.EnumType(oid)
			}
			if col.t.kind == numeric {
				v.Scale, v.Typmod = int16(col.t.scale), int32(col.t.prec<<16|col.t.scale)+4
			}
			if col.t.n > 0 {
				v.Typmod = int32(col.t.n) + 4
			}
			if col.t.kind.isText() {
				v.Collation = vector.Collation{OID: 950, Deterministic: true, C: true}
			}
			unsupported := col.other
			if col.t.kind == opaque {
				unsupported = ""
				if of := slices.IndexFunc(sqltype.Opaques(), func(t *sqltype.Opaque) bool { return t.Name == col.t.name }); of >= 0 {
					oid = sqltype.Opaques()[of].OID
					v = vector.OpaqueType(oid)
				} else {
					oid = 16384
					v, _ = sqltype.OpaqueExtensionType(col.t.name, oid)
				}
			}
			m.Columns = append(m.Columns, catalog.Column{Name: strings.Trim(col.name, `"`), AttNum: int16(j + 1), TypeOID: oid, Type: v, NotNull: col.notNull, Enum: labels, Unsupported: unsupported})
		}
		if t.key != nil {
			m.Indexes = append(m.Indexes, catalog.Index{Name: "key", Columns: t.key, Unique: true})
		}
		c.Tables = append(c.Tables, m)
	}
	return c
}

// TestGeneratorReachesEverything reads from the sources what pushdown can plan, so
// that nothing is added there without being asked here.
func TestGeneratorReachesEverything(t *testing.T) {
	p := planMany(60000)
	for i, name := range constants(t, "../../plan/expr.go", "Op") {
		if op := plan.Op(i); op != plan.OpInvalid && op != plan.OpSame && p.ops[op] == 0 { // OpSame: of nondeterministic collations, which catalogOf has not
			t.Errorf("no query has %s", name)
		}
	}
	// There are more functions than so many queries are sure to call: what is left is asked for.
	missing := func() (list []sqlfn.Function) {
		for _, f := range sqlfn.All() {
			document := f.Args[0].Kind.IsDocument() || f.Result.IsArray() // few columns are: integration's TestJSONB, and TestExpressions, call these
			if p.functions[f.OID] == 0 && !f.Partial && !document {       // of constants nothing is left to call
				list = append(list, f)
			}
		}
		return list
	}
	if list := missing(); len(list) > 20 {
		t.Errorf("%d functions are called by none of 60,000 queries", len(list))
	} else if len(list) > 0 {
		p.more(1000, 4000, list)
	}
	for _, f := range missing() {
		t.Errorf("no query calls %s, %d", f.Name, f.OID)
	}
	for _, a := range sqlfn.Aggregates {
		if p.aggs[a] == 0 {
			t.Errorf("no query has the aggregate %s", a)
		}
	}
	for _, k := range []plan.JoinKind{plan.Inner, plan.Left} { // others are not executed
		if p.joins[k] == 0 {
			t.Errorf("no query has join %d", k)
		}
	}
	for _, form := range []string{"grouping sets", "an empty set", "sums of floats", "GROUPING", "a join on no unique key", "DISTINCT in an aggregate", "WITH", "LATERAL", "a query shown by another", "a percentile of descending values"} {
		if p.forms[form] == 0 {
			t.Errorf("no query has %s", form)
		}
	}
	for form := range forms {
		if p.forms[form] == 0 {
			t.Errorf("no statement that is planned has %s", form)
		}
	}
	text := p.text.String()
	for _, word := range pushdownWords(t) {
		if f := sqlfn.Named(word); len(f) > 0 && len(f[0].Args) > 0 && f[0].Args[0].Kind == vector.JSON {
			continue // integration's TestJSON calls it
		}
		if slices.Contains([]string{"to_jsonb", "jsonb_build_array", "jsonb_build_object"}, word) {
			continue // TestExpressions calls them
		}
		pattern := regexp.QuoteMeta(word)
		if word[0] >= 'a' && word[0] <= 'z' {
			pattern = `\b` + pattern + `\b`
		}
		if !regexp.MustCompile(pattern).MatchString(text) {
			t.Errorf("no query has %q", word)
		}
	}
}

// constants returns the names of a file's constants of a type, in order.
func constants(t *testing.T, file, typ string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		first := g.Specs[0].(*ast.ValueSpec)
		if id, ok := first.Type.(*ast.Ident); !ok || id.Name != typ {
			continue
		}
		for _, s := range g.Specs {
			out = append(out, s.(*ast.ValueSpec).Names[0].Name)
		}
	}
	if len(out) == 0 {
		t.Fatalf("%s has no constants of type %s", file, typ)
	}
	return out
}

// pushdownWords returns the names of aggregates, the keys of pushdown's tables of operators,
// types and units, and the functions that funcCall knows.
func pushdownWords(t *testing.T) []string {
	t.Helper()
	tables := map[string]bool{"comparisons": true, "arithmetic": true}
	found := map[string]bool{}
	words := map[string]bool{}
	for _, a := range append(slices.Clone(sqlfn.Aggregates), sqlfn.StringAgg, sqlfn.ArrayAgg, sqlfn.Mode) {
		for _, name := range a.Names {
			words[name] = true
		}
	}
	for _, k := range vector.Kinds() {
		words[sqltype.Of(k).Name] = true
	}
	files, _ := filepath.Glob("../../pushdown/*.go")
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		add := func(e ast.Expr) {
			if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
				s, _ := strconv.Unquote(l.Value)
				words[s] = true
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.ValueSpec:
				if tables[x.Names[0].Name] {
					found[x.Names[0].Name] = true
					for _, kv := range x.Values[0].(*ast.CompositeLit).Elts {
						add(kv.(*ast.KeyValueExpr).Key)
					}
				}
			case *ast.FuncDecl:
				if x.Name.Name == "funcCall" {
					ast.Inspect(x, func(n ast.Node) bool {
						if c, ok := n.(*ast.CaseClause); ok {
							for _, e := range c.List {
								add(e)
							}
						}
						return true
					})
				}
			}
			return true
		})
	}
	if len(found) != len(tables) {
		t.Fatalf("of pushdown's tables only %v are there", slices.Sorted(maps.Keys(found)))
	}
	spelled := map[string]string{"bool": "boolean", "int2": "smallint", "int4": "integer", "int8": "bigint", "float4": "real", "float8": "double precision", "timetz": "time"}
	delete(words, "bpchar") // no cast to char is taken; its columns are
	for _, name := range []string{"array_length", "cardinality", "array_lower", "array_upper", "array_ndims", "array_dims", "array_position", "array_positions", "array_remove", "array_to_string", "array_append", "array_prepend", "array_cat", "array_replace", "trim_array", "regexp_like", "num_nulls", "num_nonnulls"} {
		delete(words, name) // integration's TestArrayColumns, and pushdown's expressions, or TestExpressions, have them
	}
	var out []string
	for _, w := range slices.Sorted(maps.Keys(words)) {
		if s, ok := spelled[w]; ok {
			w = s
		}
		out = append(out, w)
	}
	return out
}
