package referee

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// column is one column of a table.
type column struct {
	name    string
	t       typ
	other   string // the SQL type of a column that pgaccel does not copy, "" where it does
	domain  bool   // of a domain over t
	notNull bool
	wild    bool     // holds edges of its type: arithmetic on it may fail
	pool    []string // values that occur, and some that do not
	lo, hi  float64  // of the pool, for numbers
	held    []string // values of text that are in the rows
	nulls   int      // of 100 values
	spread  string   // constant, skewed, sorted, even or unique
	refs    *column  // the key that this column points to, with its table
	refsTo  *table
}

// table is a table with its rows as they were first: text, nil for null.
type table struct {
	schema, name string
	cols         []*column
	key          []int // the unique key that joins use, nil for none
	primary      bool  // the key is the primary key, not a unique index
	extra        []int // columns with a further index, that is not unique
	limits       bool  // holds what is least and greatest of each type
	virtual      bool  // no table: the columns of a block
	apart        []int // columns of a block that no two rows agree in, nil where none are known
	rows         [][]*string
}

func (t *table) qualified() string { return t.schema + "." + t.name }

// ddl returns the statements that create the table, empty.
func (t *table) ddl() []string {
	var defs []string
	names := func(cols []int) string {
		var out []string
		for _, c := range cols {
			out = append(out, t.cols[c].name)
		}
		return strings.Join(out, ", ")
	}
	var out []string
	for i, c := range t.cols {
		d := c.name + " " + c.t.sql()
		if c.domain {
			name := fmt.Sprintf("%s_domain%d", t.qualified(), i)
			out = append(out, "CREATE DOMAIN "+name+" AS "+c.t.sql())
			d = c.name + " " + name
		}
		if c.other != "" {
			d = c.name + " " + c.other
		}
		if c.notNull {
			d += " NOT NULL"
		}
		defs = append(defs, d)
	}
	if t.key != nil && t.primary {
		defs = append(defs, "PRIMARY KEY ("+names(t.key)+")")
	}
	out = append(out, fmt.Sprintf("CREATE TABLE %s (%s)", t.qualified(), strings.Join(defs, ", ")))
	switch {
	case t.key == nil:
		out = append(out, fmt.Sprintf("ALTER TABLE %s REPLICA IDENTITY FULL", t.qualified()))
	case !t.primary:
		out = append(out, fmt.Sprintf("CREATE UNIQUE INDEX %s_key ON %s (%s)", t.name, t.qualified(), names(t.key)),
			fmt.Sprintf("ALTER TABLE %s REPLICA IDENTITY USING INDEX %s_key", t.qualified(), t.name))
	}
	out = append(out, t.view(""))
	if len(t.extra) > 0 {
		out = append(out, fmt.Sprintf("CREATE INDEX ON %s (%s)", t.qualified(), names(t.extra)))
	}
	return out
}

// view is the definition of the table's view.
func (t *table) view(where string) string {
	return fmt.Sprintf("CREATE OR REPLACE VIEW %s_view AS SELECT * FROM %s%s", t.qualified(), t.qualified(), where)
}

// inserts returns the rows as INSERT statements.
func (t *table) inserts() []string {
	var out []string
	var b strings.Builder
	for i, row := range t.rows {
		if b.Len() == 0 {
			fmt.Fprintf(&b, "INSERT INTO %s VALUES\n ", t.qualified())
		} else {
			b.WriteString(",\n ")
		}
		b.WriteString(tuple(row))
		if b.Len() > 1<<18 || i == len(t.rows)-1 {
			out = append(out, b.String())
			b.Reset()
		}
	}
	return out
}

func tuple(row []*string) string {
	vals := make([]string, len(row))
	for i, v := range row {
		vals[i] = "NULL"
		if v != nil {
			vals[i] = quote(*v)
		}
	}
	return "(" + strings.Join(vals, ", ") + ")"
}

// schema is what one session asks about: a fact table first, then what it joins to, and
// at last the table of limits.
type schema struct {
	name   string
	tables []*table
}

// related are the tables without that of limits.
func (s *schema) related() []*table {
	if n := len(s.tables); n > 0 && s.tables[n-1].limits {
		return s.tables[:n-1]
	}
	return s.tables
}

// limits is the table of limits.
func (s *schema) limits() *table { return s.tables[len(s.tables)-1] }

// world is what the server offers.
type world struct {
	collations []string // as COLLATE writes them, deterministic
	loose      string   // a nondeterministic collation, "" for none
	isLoose    bool     // columns of text have it, every other one
	version    int
	rows       int // of fact tables, about; 0 is few
}

var otherTypes = []string{"varbit", "integer[]", "money"}

var otherValues = map[string][]string{"varbit": {"101", ""}, "integer[]": {"{1,2}", "{}"}, "money": {"1.50"}}

// randomSchema makes tables. Names carry the schema's, so that an unqualified name
// means one table only.
func randomSchema(r *rand.Rand, name string, w world) *schema {
	s := &schema{name: name}
	sizes := func() int {
		if w.rows > 0 && r.IntN(8) > 0 {
			return w.rows/2 + r.IntN(w.rows)
		}
		switch n := r.IntN(20); {
		case n == 0:
			return 0
		case n == 1:
			return 1
		case n < 5:
			return 2 + r.IntN(30)
		case n < 15:
			return 50 + r.IntN(500)
		}
		return 1000 + r.IntN(4000)
	}
	n := sizes()
	dims := r.IntN(4)
	for d := range dims {
		size := 1 + r.IntN(60)
		if r.IntN(8) == 0 {
			size = 100 + r.IntN(900)
		}
		dim := randomTable(r, w, name, fmt.Sprintf("%s_d%d", name, d), fmt.Sprintf("k%d_", d+1), 2+r.IntN(4))
		// A snowflake: some dimensions point to another one.
		if d > 0 && r.IntN(3) == 0 {
			dim.point(r, s.tables[r.IntN(len(s.tables))], fmt.Sprintf("r%d_", d))
		}
		dim.fill(r, size)
		s.tables = append(s.tables, dim)
	}
	f := randomTable(r, w, name, name+"_f", "k", 5+r.IntN(7))
	for _, k := range f.key {
		if t := &f.cols[k].t; n > 10000 && t.kind == int2 { // too few values
			t.kind = int4
		}
	}
	if r.IntN(8) == 0 {
		f.key, f.primary = nil, false
	}
	if n > 5000 && r.IntN(2) == 0 {
		f.cols = append(f.cols, &column{name: "words", t: typ{kind: pick(r, text, text, varchar)}, spread: pick(r, "even", "skewed"), nulls: pick(r, 0, 10)})
	}
	for i, dim := range s.tables {
		// Under the key's own name, for USING, or another.
		f.point(r, dim, pick(r, "", fmt.Sprintf("f%d_", i)))
		if r.IntN(6) == 0 {
			f.point(r, dim, fmt.Sprintf("g%d_", i))
		}
	}
	for range r.IntN(3) {
		c := r.IntN(len(f.cols))
		if f.cols[c].other == "" && f.cols[c].t.kind != json && !slices.Contains(f.extra, c) {
			f.extra = append(f.extra, c)
		}
	}
	f.fill(r, n)
	s.tables = append([]*table{f}, s.tables...)
	s.tables = append(s.tables, limitsTable(r, w, name))
	return s
}

// randomType picks a column's type.
func randomType(r *rand.Rand, w world) typ {
	t := typ{kind: anyKind(r)}
	if r.IntN(12) == 0 {
		t.kind = pick(r, jsonb, jsonb, jsonb, jsonb, json)
	}
	switch t.kind {
	case numeric:
		p := [][2]int{{3, 0}, {5, 2}, {9, 3}, {12, 2}, {15, 2}, {18, 0}, {18, 4}, {18, 18}, {10, 10}, {7, 1}}[r.IntN(10)]
		t.prec, t.scale = p[0], p[1]
		if r.IntN(3) == 0 {
			t.prec, t.scale = pick(r, 0, 0, widePrec), varying
		}
	case varchar:
		if r.IntN(4) > 0 {
			t.n = []int{1, 3, 10, 200}[r.IntN(4)]
		}
	case char:
		t.n = []int{1, 2, 5, 12}[r.IntN(4)]
	}
	if t.kind.isText() && r.IntN(4) == 0 && len(w.collations) > 0 {
		t.coll = w.collations[r.IntN(len(w.collations))]
	}
	if t.kind.isText() && w.isLoose && r.IntN(2) == 0 {
		t.coll = w.loose
	}
	return t
}

// randomTable makes a table with a key and n more columns.
func randomTable(r *rand.Rand, w world, schema, name, key string, n int) *table {
	t := &table{schema: schema, name: name, primary: r.IntN(4) > 0}
	keys := 1
	if r.IntN(6) == 0 {
		keys = 2
	}
	for i := range keys {
		k := typ{kind: []kind{int4, int4, int4, int8, int2, date, text, varchar, numeric, timestamp, char}[r.IntN(11)]}
		switch k.kind {
		case numeric:
			k.prec, k.scale = 9, r.IntN(3)
			if r.IntN(3) == 0 {
				k.prec, k.scale = 0, varying
			}
		case char:
			k.n = 8
		}
		t.key = append(t.key, i)
		t.cols = append(t.cols, &column{name: fmt.Sprintf("%s%d", key, i), t: k, notNull: true, spread: "unique"})
	}
	for i := range n {
		c := &column{name: fmt.Sprintf("c%d", i), t: randomType(r, w), spread: []string{"constant", "skewed", "skewed", "sorted", "even", "even", "even"}[r.IntN(7)],
			wild: r.IntN(4) == 0, nulls: []int{0, 0, 5, 20, 100}[min(r.IntN(6), 4)]}
		if r.IntN(30) == 0 {
			c.other = otherTypes[r.IntN(len(otherTypes))]
		} else if w.loose != "" && r.IntN(60) == 0 {
			c.other = "text COLLATE " + w.loose
		} else {
			c.domain = c.t.kind != enum && r.IntN(16) == 0
		}
		if r.IntN(20) == 0 {
			c.opaqueColumn(r)
		}
		if c.nulls == 100 && r.IntN(3) > 0 {
			c.nulls = 50
		}
		c.notNull = c.nulls == 0 && r.IntN(2) == 0
		t.cols = append(t.cols, c)
		if r.IntN(8) == 0 { // a name that must be quoted
			c.name = fmt.Sprintf(`"C %d"`, i)
		}
	}
	return t
}

// point adds columns that hold values of another table's key.
func (t *table) point(r *rand.Rand, to *table, prefix string) {
	for _, k := range to.key {
		key := to.cols[k]
		c := &column{name: prefix + key.name, t: key.t, refs: key, refsTo: to, nulls: []int{0, 0, 10}[r.IntN(3)], spread: []string{"skewed", "even", "sorted"}[r.IntN(3)]}
		switch {
		case key.t.kind.isInt() && r.IntN(4) == 0:
			c.t.kind = []kind{int4, int8}[r.IntN(2)]
		case key.t.kind == text && r.IntN(4) == 0:
			c.t.kind = varchar
		}
		t.cols = append(t.cols, c)
	}
}

// fill makes pools and rows.
func (t *table) fill(r *rand.Rand, n int) {
	for _, c := range t.cols {
		switch {
		case c.t.kind == opaque: // has its samples
		case c.other != "":
			c.pool = otherValues[strings.Split(c.other, " COLLATE")[0]]
			if c.pool == nil {
				c.pool = tameWords
			}
		case c.spread == "unique":
			c.pool = nil
			for i := range n + 3 {
				c.pool = append(c.pool, keyValue(c.t, i))
			}
		case c.refs != nil:
			c.pool = slices.Clone(c.refs.pool)
			if len(c.pool) == 0 {
				c.pool = []string{keyValue(c.t, 0)}
			}
		default:
			size := []int{1, 2, 5, 12, 60, 400}[r.IntN(6)]
			if n > 5000 && (c.name == "words" || r.IntN(4) == 0) { // many values
				size = n / (1 + r.IntN(20))
			}
			if c.name == "words" {
				size = max(size, 2*packedTexts)
			}
			c.pool = pool(r, c.t, max(size, 1), c.wild)
		}
		if c.t.kind.isNumber() && c.other == "" {
			c.lo, c.hi = bounds(c.pool)
		}
	}
	for i := range n {
		t.rows = append(t.rows, t.row(r, i, n))
	}
	t.hold()
}

// hold notes which text is in the rows.
func (t *table) hold() {
	for j, c := range t.cols {
		if !c.t.kind.isText() || c.other != "" {
			continue
		}
		seen := map[string]bool{}
		for _, row := range t.rows {
			if v := row[j]; v != nil && !seen[*v] {
				seen[*v] = true
				c.held = append(c.held, *v)
			}
		}
	}
}

// row makes the i-th of about n rows.
func (t *table) row(r *rand.Rand, i, n int) []*string {
	row := make([]*string, len(t.cols))
	for j, c := range t.cols {
		row[j] = c.value(r, i, n)
	}
	if len(t.key) == 2 && t.cols[0].spread == "unique" {
		// A composite key: neither half is unique.
		a, b := t.cols[0], t.cols[1]
		row[0], row[1] = &a.pool[min(i/5, len(a.pool)-1)], &b.pool[i%5%len(b.pool)]
	}
	return row
}

// value makes the column's value in the i-th of about n rows.
func (c *column) value(r *rand.Rand, i, n int) *string {
	if len(c.pool) == 0 || !c.notNull && r.IntN(100) < c.nulls {
		return nil
	}
	at := 0
	switch c.spread {
	case "unique":
		if i >= len(c.pool) {
			v := keyValue(c.t, i)
			return &v
		}
		at = i
	case "constant":
	case "skewed":
		at = min(r.IntN(len(c.pool)), r.IntN(len(c.pool)), r.IntN(len(c.pool)))
	case "sorted":
		at = i * len(c.pool) / max(n, 1) % len(c.pool)
	default:
		at = r.IntN(len(c.pool))
	}
	return &c.pool[at]
}
