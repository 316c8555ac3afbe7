package pushdown

import (
	"os"
	"slices"
	"strings"
	"testing"

	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/catalog"
	"pgaccel/internal/events"
	"pgaccel/vector"
)

// schemaFiles make the catalog of the tests; the differential test gives the same
// files to a server.
var schemaFiles = []string{"testdata/schema.sql", "../internal/ssb/sql/schema.sql", "../internal/ssb/sql/keys.sql",
	"../internal/events/sql/schema.sql"}

func schemaText(t testing.TB) string {
	var b strings.Builder
	for _, name := range schemaFiles {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(text)
		b.WriteByte('\n')
	}
	b.WriteString(events.Key() + ";\n")
	every, _ := everyType()
	b.WriteString(every)
	return b.String()
}

// testCatalog reads the schema files into a catalog.
func testCatalog(t testing.TB) *catalog.Catalog {
	t.Helper()
	tree, err := pg.Parse(schemaText(t))
	if err != nil {
		t.Fatal(err)
	}
	cat := &catalog.Catalog{Shadowed: map[string]bool{}}
	table := func(r *pg.RangeVar) *catalog.Table { return cat.Lookup("", r.Relname)[0] }
	unique := func(tab *catalog.Table, names []string) {
		ix := catalog.Index{Name: tab.Name, Unique: true}
		for _, n := range names {
			ix.Columns = append(ix.Columns, tab.Column(n))
			tab.Columns[tab.Column(n)].NotNull = true
		}
		tab.Indexes = append(tab.Indexes, ix)
	}
	for _, raw := range tree.Stmts {
		switch s := raw.Stmt.Node.(type) {
		case *pg.Node_CreateStmt:
			tab := &catalog.Table{OID: uint32(10000 + len(cat.Tables)), Schema: "public", Name: s.CreateStmt.Relation.Relname, Rows: 1000000}
			cat.Tables = append(cat.Tables, tab)
			switch tab.Name {
			case "lineorder", "orders", "events":
				tab.Rows = 6000000
			case "hierarchy":
				tab.Rows = 20000
			case "regions":
				tab.Rows = 5
			}
			for _, elt := range s.CreateStmt.TableElts {
				if c := elt.GetConstraint(); c != nil {
					unique(tab, nameList(c.Keys))
					continue
				}
				d := elt.GetColumnDef()
				col := catalog.Column{Name: d.Colname, AttNum: int16(len(tab.Columns) + 1), Type: columnType(d.TypeName)}
				if col.Type.Kind == vector.Invalid {
					col.Unsupported = "type regclass"
				}
				tab.Columns = append(tab.Columns, col)
				for _, n := range d.Constraints {
					switch n.GetConstraint().Contype {
					case pg.ConstrType_CONSTR_NOTNULL:
						tab.Columns[len(tab.Columns)-1].NotNull = true
					case pg.ConstrType_CONSTR_PRIMARY, pg.ConstrType_CONSTR_UNIQUE:
						unique(tab, []string{d.Colname})
					}
				}
			}
		case *pg.Node_AlterTableStmt:
			for _, cmd := range s.AlterTableStmt.Cmds {
				unique(table(s.AlterTableStmt.Relation), nameList(cmd.GetAlterTableCmd().Def.GetConstraint().Keys))
			}
		case *pg.Node_IndexStmt:
			tab := table(s.IndexStmt.Relation)
			ix := catalog.Index{Name: s.IndexStmt.Idxname}
			for _, p := range s.IndexStmt.IndexParams {
				ix.Columns = append(ix.Columns, tab.Column(p.GetIndexElem().Name))
			}
			tab.Indexes = append(tab.Indexes, ix)
		}
	}
	return cat
}

func columnType(n *pg.TypeName) vector.Type {
	names := nameList(n.Names)
	t := vector.TypeOf(typeNames[names[len(names)-1]])
	var mods []int32
	for _, m := range n.Typmods {
		mods = append(mods, m.GetAConst().GetIval().GetIval())
	}
	switch {
	case t.Kind == vector.Numeric && len(mods) == 2:
		t.Scale, t.Typmod = int16(mods[1]), mods[0]<<16+mods[1]+4
	case t.Kind.IsText():
		t.Collation = vector.Collation{OID: 100, Deterministic: true, C: true}
		if len(mods) == 1 {
			t.Typmod = mods[0] + 4
		}
	}
	return t
}

func TestTestCatalog(t *testing.T) {
	cat := testCatalog(t)
	o := cat.Lookup("public", "orders")[0]
	if i := slices.IndexFunc(o.Columns, func(c catalog.Column) bool { return c.Unsupported != "" }); o.Columns[i].Name != "doc" || !o.UniqueOn([]int{0}) {
		t.Errorf("orders: %+v", o)
	}
	if s := cat.Lookup("", "shops")[0]; s.UniqueOn([]int{0}) || !s.UniqueOn([]int{0, 1}) {
		t.Errorf("shops: %+v", s)
	}
}
