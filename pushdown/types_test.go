package pushdown

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgaccel/sqltype"
	"pgaccel/syntax"
	"pgaccel/vector"
)

// plainTypes are the types, but text, that need no modifier.
func plainTypes() (list []*sqltype.Type) {
	for _, k := range vector.Kinds() {
		if !k.IsText() && !k.IsDocument() && k != vector.Numeric {
			list = append(list, sqltype.Of(k))
		}
	}
	return list
}

// everyType is a table with a column of each of plainTypes, named as its type, and with the
// samples of each as rows.
func everyType() (schema, data string) {
	columns := []string{"id integer PRIMARY KEY"}
	rows := 0
	for _, typ := range plainTypes() {
		columns = append(columns, fmt.Sprintf("c_%s %[1]s", typ.Name))
		rows = max(rows, len(typ.Samples)+1)
	}
	var values []string
	for i := range rows {
		row := fmt.Sprint(i)
		for _, typ := range plainTypes() {
			if at := i % (len(typ.Samples) + 1); at < len(typ.Samples) {
				row += ", '" + typ.Samples[at] + "'"
			} else {
				row += ", NULL"
			}
		}
		values = append(values, "("+row+")")
	}
	return "CREATE TABLE every (" + strings.Join(columns, ", ") + ");\n", "INSERT INTO every VALUES " + strings.Join(values, ",\n") + ";\n"
}

// everyStatement are statements that are planned of every type whose literals are read.
func everyStatement(typ *sqltype.Type) (sqls []string) {
	c, name := "c_"+typ.Name, typ.Name
	add := func(format string, args ...any) { sqls = append(sqls, fmt.Sprintf(format, args...)) }
	add("SELECT id, %s FROM every", c)
	add("SELECT %s, count(*) FROM every GROUP BY %[1]s", c)
	add("SELECT DISTINCT %s FROM every", c)
	add("SELECT %s, id FROM every ORDER BY %[1]s, id", c)
	add("SELECT %s, id FROM every ORDER BY %[1]s DESC NULLS LAST, id LIMIT 3", c)
	add("SELECT count(%s), count(DISTINCT %[1]s) FROM every", c)
	add("SELECT id FROM every WHERE %s IS NULL", c)
	add("SELECT a.id, b.id FROM every a JOIN every b ON a.%s = b.%[1]s", c)
	add("SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY %s) FROM every", c)
	for i, s := range typ.Samples {
		next := typ.Samples[(i+1)%len(typ.Samples)]
		for _, op := range []string{"=", "<>", "<", "<=", ">", ">="} {
			add("SELECT id FROM every WHERE %s %s '%s'", c, op, s)
		}
		add("SELECT id FROM every WHERE ' %s ' = %s", s, c)
		add("SELECT id FROM every WHERE %s IN ('%s', '%s')", c, s, next)
		add("SELECT id FROM every WHERE %s NOT IN ('%s', '%s')", c, s, next)
		add("SELECT id FROM every WHERE %s BETWEEN %s '%s' AND '%s'::%[2]s", c, name, s, next)
		add("SELECT id FROM every WHERE %s IS DISTINCT FROM CAST('%s' AS %s)", c, s, name)
		add("SELECT coalesce(%s, '%s'), nullif(%[1]s, '%[2]s'), CASE WHEN id > 2 THEN %[1]s ELSE '%[2]s' END FROM every", c, s)
		add("SELECT id, '%s'::%s FROM every", s, name)
	}
	return sqls
}

// mayBeLeft reports whether a statement of everyStatement is left to the server: floats are
// no keys of joins, and constants that are not finite, or no dates of four digits, are not
// read.
func mayBeLeft(typ *sqltype.Type, sql string) bool {
	if typ.Kind.IsFloat() && strings.Contains(sql, "JOIN") {
		return true
	}
	if typ.Kind == vector.CIDR && strings.Contains(sql, "nullif") { // which is inet
		return true
	}
	if (typ.Kind.IsString() || typ.Kind == vector.Interval && strings.Contains(sql, "P1")) && strings.Contains(sql, "' ") { // blanks are not skipped
		return true
	}
	return slices.ContainsFunc(typ.Samples, func(v string) bool {
		odd := v == "NaN" || strings.HasSuffix(strings.ToLower(v), "infinity") || strings.HasSuffix(v, "BC") || typ.Settings && strings.IndexByte(v, '-') > 4
		return odd && strings.Contains(sql, v)
	})
}

// TestEveryType compares plans over all types with the server.
func TestEveryType(t *testing.T) {
	s := startServer(t)
	for _, typ := range plainTypes() {
		t.Run(typ.Name, func(t *testing.T) {
			sqls := everyStatement(typ)
			for _, f := range []string{"min", "max", "sum", "avg"} { // where the server has them
				sqls = append(sqls, fmt.Sprintf("SELECT %s(c_%s) FROM every", f, typ.Name))
			}
			for _, other := range plainTypes() { // the server may have the operator, and no plan of it
				for _, op := range []string{"=", "<"} {
					sqls = append(sqls, fmt.Sprintf("SELECT id FROM every WHERE c_%s %s c_%s", typ.Name, op, other.Name))
				}
			}
			var left []string
			for i, sql := range sqls {
				if _, planned := s.compare(t, sql); !planned && i < len(everyStatement(typ)) && !mayBeLeft(typ, sql) {
					left = append(left, sql)
				}
			}
			if len(left) > 0 {
				t.Errorf("%d are not planned, such as %s", len(left), left[0])
				t.Log(Plan(syntax.Parse(left[0]), nil, s.cat).Forward)
			}
		})
	}
}
