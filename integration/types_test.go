package integration

import (
	"fmt"
	"strings"
	"testing"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// everyTable has a column of each type but text that needs no modifier,
// named as the type, and for each a dimension whose key it is. The rows hold the types'
// samples: those with even numbers are there when pgaccel starts.
func everyTable() (types []*sqltype.Type, schema, later string) {
	var samples [][]string
	columns, dims := []string{"id int PRIMARY KEY"}, ""
	rows := 0
	for _, k := range vector.Kinds() {
		typ := sqltype.Of(k)
		if k.IsString() || k == vector.Numeric {
			continue
		}
		types, samples = append(types, typ), append(samples, typ.Samples)
		columns = append(columns, fmt.Sprintf("c_%s %[1]s", typ.Name))
		dims += fmt.Sprintf("CREATE TABLE dim_%s (k %[1]s PRIMARY KEY, n int);\nINSERT INTO dim_%[1]s VALUES ('%s', 1), ('%s', 2);\n", typ.Name, typ.Samples[0], typ.Samples[len(typ.Samples)-1])
		rows = max(rows, len(typ.Samples)+1)
	}
	insert := func(from int) string {
		return insertSamples("every", samples, from, 3*rows, func(i int) string { return fmt.Sprint(i) })
	}
	schema = dims + "CREATE TABLE every (" + strings.Join(columns, ", ") + ");\n" + insert(0)
	return types, schema, insert(1)
}

// insertSamples inserts every second row from from to before to: what first says of it, and a sample of each type, or null.
func insertSamples(table string, samples [][]string, from, to int, first func(i int) string) string {
	var values []string
	for i := from; i < to; i += 2 {
		row := first(i)
		for _, of := range samples {
			if at := i % (len(of) + 1); at < len(of) {
				row += ", '" + strings.ReplaceAll(of[at], "'", "''") + "'"
			} else {
				row += ", NULL"
			}
		}
		values = append(values, "("+row+")")
	}
	return "INSERT INTO " + table + " VALUES " + strings.Join(values, ", ") + ";\n"
}

// everyAnswer compares the answers of one statement in all forms; accelerated says that
// each must come from pgaccel.
func (s *stack) everyAnswer(t *testing.T, accelerated bool, sql string, params ...string) {
	t.Helper()
	direct, proxied := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	formats := [][]int16{{0}, {1}}
	if len(params) == 0 {
		formats = append(formats, nil) // simple protocol
	}
	least := 0
	if accelerated {
		least = len(formats)
	}
	s.accelerates(t, least, func() {
		for _, f := range formats {
			want, got := ask(t, direct, sql, f, params...), ask(t, proxied, sql, f, params...)
			if got.String() != want.String() {
				t.Errorf("%s, formats %v: got %.1000s\nwant %.1000s", sql, f, got, want)
			}
		}
	})
	if t.Failed() {
		t.Fatal(sql)
	}
}

// TestEveryType takes each type of sqltype's table through the copy, the stream, plans and
// results.
func TestEveryType(t *testing.T) {
	types, schema, later := everyTable()
	s := privateStack(t, schema)
	direct := connect(t, s.direct.url("postgres"))
	for _, sql := range []string{later, "UPDATE every SET id = id + 1000 WHERE id % 5 = 0", "DELETE FROM every WHERE id % 7 = 0"} {
		if a := ask(t, direct, sql, nil); a.err != "" {
			t.Fatal(a)
		}
	}
	for _, typ := range types {
		t.Run(typ.Name, func(t *testing.T) {
			c, float := "c_"+typ.Name, typ.Kind.IsFloat()
			if a := ask(t, direct, fmt.Sprintf("UPDATE every SET %s = '%s' WHERE id %% 11 = 0", c, typ.Samples[1]), nil); a.err != "" {
				t.Fatal(a)
			}
			s.everyAnswer(t, true, fmt.Sprintf("SELECT id, %s FROM every ORDER BY id", c))
			s.everyAnswer(t, !float, fmt.Sprintf("SELECT %s, count(*) FROM every GROUP BY %[1]s ORDER BY %[1]s", c))
			s.everyAnswer(t, true, fmt.Sprintf("SELECT %s, id FROM every ORDER BY %[1]s DESC NULLS LAST, id LIMIT 20", c))
			s.everyAnswer(t, true, fmt.Sprintf("SELECT count(%s), count(DISTINCT %[1]s) FROM every", c))
			s.everyAnswer(t, !float, fmt.Sprintf("SELECT e.id, d.n, d.k FROM every e JOIN dim_%s d ON e.%s = d.k ORDER BY e.id", typ.Name, c))
			if !typ.NoExtremes {
				s.everyAnswer(t, !float, fmt.Sprintf("SELECT min(%s), max(%[1]s) FROM every", c))
			}
			s.everyAnswer(t, false, fmt.Sprintf("SELECT id FROM every WHERE %s = 'no value'", c))
			plain := !float && !typ.Settings // every literal is read
			for i, v := range typ.Samples {
				next := typ.Samples[(i+1)%len(typ.Samples)]
				s.everyAnswer(t, plain, fmt.Sprintf("SELECT id FROM every WHERE %s = '%s' ORDER BY id", c, v))
				s.everyAnswer(t, plain, fmt.Sprintf("SELECT count(*), count(%s) FROM every WHERE %[1]s > '%s' OR %[1]s IN ('%[2]s', '%[3]s')", c, v, next))
				s.everyAnswer(t, plain, fmt.Sprintf("SELECT id FROM every WHERE %s BETWEEN '%s' AND %s '%s' ORDER BY id", c, v, typ.Name, next))
				s.everyAnswer(t, plain, fmt.Sprintf("SELECT count(*) FROM every WHERE %s >= $1", c), v)
			}
		})
	}
}
