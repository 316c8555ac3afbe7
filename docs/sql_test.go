package docs

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"pgaccel/catalog"
	"pgaccel/olap"
	"pgaccel/pushdown"
	"pgaccel/sqlfn"
	"pgaccel/sqltype"
	"pgaccel/syntax"
	"pgaccel/vector"
)

var update = flag.Bool("update", false, "write sql.md anew")

// everyKind is a catalog with a table t that has a column for each kind, k1 and up.
func everyKind() (*catalog.Catalog, []vector.Kind) {
	var kinds []vector.Kind
	t := &catalog.Table{OID: 10000, Schema: "public", Name: "t", Rows: 1e6}
	labels := &catalog.Enum{OID: 20000, Schema: "public", Name: "k", Labels: []catalog.Label{{OID: 20001, Text: "a"}}}
	for k := vector.Bool; k.Valid(); k++ {
		typ := vector.TypeOf(k)
		switch {
		case k == vector.Numeric:
			typ.Scale, typ.Typmod = 2, 10<<16|2+4
		case k.IsText():
			typ.Collation = vector.Collation{OID: 100, Deterministic: true, C: true}
			if k == vector.BPChar {
				typ.Typmod = 10 + 4
			}
		}
		c := catalog.Column{Name: fmt.Sprintf("k%d", k), AttNum: int16(len(kinds) + 1), Type: typ}
		if k == vector.Enum {
			c.TypeOID, c.Type, c.Enum = labels.OID, vector.EnumType(labels.OID), labels
		}
		if k == vector.Opaque {
			continue // listed apart
		}
		kinds = append(kinds, k)
		t.Columns = append(t.Columns, c)
	}
	return &catalog.Catalog{Tables: []*catalog.Table{t}, Enums: []*catalog.Enum{labels}, Shadowed: map[string]bool{}}, kinds
}

// asker says what is accelerated by planning it.
type asker struct {
	cat   *catalog.Catalog
	kinds []vector.Kind
}

// documents writes examples of what is computed of jsonb.
func (a *asker) documents(t *testing.T, b *strings.Builder) {
	b.WriteString("\n## jsonb\n\nDocuments are copied as the text that PostgreSQL writes. They have = and <> with a value over no rows, by value as PostgreSQL has them, but no order, groups or distinct\n" +
		"values, which are forwarded; what is taken out of them as text has all that text has. The arrays of #>, #>>, ?| and ?& are constant, neither empty nor with nulls. Numbers in literals have no exponent.\n\n" +
		"Documents of json are copied as the text that was written, and have no = either. Of these operators they have ->, ->>, #> and #>>. Where a key on the path of #> occurs more than once in an object,\n" +
		"or an escape in the document is of no character, or of one beyond U+FFFF, the statement is forwarded.\n\n| such as | |\n|---|---|\n")
	for _, e := range []string{"k -> 'a'", "k ->> 'a'", "k -> 0", "k ->> -1", "k -> 'a' ->> 'b'", "k #> '{a,0}'", "k #>> ARRAY['a', 'b']", "k['a'][0]", "k ? 'a'", "k ?| ARRAY['a', 'b']", "k ?& '{a,b}'",
		"k @> '{\"a\": 1}'", "k <@ '[1, 2]'", "k = '{}'", "(k ->> 'a')::integer", "k::text", "coalesce(k, '{}')"} {
		column := fmt.Sprintf("k%d", vector.JSONB)
		r := a.result(column + e[1:])
		if strings.HasPrefix(e, "(") || strings.HasPrefix(e, "coalesce") {
			r = a.result(strings.Replace(e, "(k", "("+column, 1))
		}
		if r == "" {
			t.Errorf("%s is not accelerated", e)
		}
		fmt.Fprintf(b, "| `%s` | %s |\n", strings.ReplaceAll(e, "|", "\\|"), r)
	}
}

// constants writes examples of what the server computes.
func (a *asker) constants(t *testing.T, b *strings.Builder) {
	b.WriteString("\n## Constants that the server computes\n\nWhat reads no column and is not folded is computed by PostgreSQL, in the client's session and transaction, before each execution:\n" +
		"now() and the like, and operators, casts and functions of dates, times, intervals, numbers and text over such values, literals and parameters that are cast. In any time zone\n" +
		"a date or a timestamp is compared with such a moment (but in the hours of a change of the zone's clocks, a timestamp), and a timestamptz with such a date or timestamp. Text is = or <> current_user, session_user\n" +
		"and current_catalog. Literals on whose meaning settings decide (timestamptz without an offset, `'02/03/2024'`, `'-1 day 2:00'`), statement_timestamp() and what is volatile are left to the statement, and so is one whose\n" +
		"constant is null or an error.\n\n| such as | |\n|---|---|\n")
	for _, e := range []string{"now() - interval '7 days'", "current_date - 30", "current_timestamp(0)", "localtimestamp", "transaction_timestamp()", "date_trunc('month', now())",
		"current_date - interval '1 month'", "now()::date", "(now() AT TIME ZONE 'UTC')::date", "date_trunc('week', now(), 'Europe/Berlin')", "timestamp '2023-01-01' AT TIME ZONE 'Europe/Berlin'",
		"extract(year from now())", "to_char(now(), 'YYYY-MM')", "to_date('2023-01', 'YYYY-MM')", "to_timestamp(1700000000)", "make_date(2024, 2, 29)", "now() - make_interval(days => 7)", "now() - 3 * interval '1 month'",
		"current_setting('TimeZone')", "version()"} {
		r := a.result(e)
		if r == "" {
			t.Errorf("%s is forwarded", e)
		}
		fmt.Fprintf(b, "| `%s` | %s |\n", e, r)
	}
}

// result returns the type of an expression over t, "" where it is forwarded.
func (a *asker) result(expr string) string {
	st := pushdown.Plan(syntax.Parse("SELECT "+expr+" FROM t"), nil, a.cat)
	if st.Star == nil || olap.Supports(st.Star) != nil {
		return ""
	}
	return st.Star.Output[0].Type().Kind.String()
}

func ofKind(k vector.Kind) string { return fmt.Sprintf("k%d", k) }

// matrix writes a row for each kind on the left, with all on the right for which expr is
// accelerated; rows that say the same are one.
func (a *asker) matrix(b *strings.Builder, expr func(l, r vector.Kind) string) {
	type row struct {
		left  []string
		right string
	}
	var rows []row
	for _, l := range a.kinds {
		var right []string
		for _, r := range a.kinds {
			if e := expr(l, r); e != "" && a.result(e) != "" {
				right = append(right, r.String())
			}
		}
		text := strings.Join(right, ", ")
		if i := slices.IndexFunc(rows, func(x row) bool { return x.right == text }); i >= 0 {
			rows[i].left = append(rows[i].left, l.String())
		} else if text != "" {
			rows = append(rows, row{[]string{l.String()}, text})
		}
	}
	for _, r := range rows {
		fmt.Fprintf(b, "| %s | %s |\n", strings.Join(r.left, ", "), r.right)
	}
}

func (a *asker) page(t *testing.T) string {
	b := &strings.Builder{}
	b.WriteString("# What is accelerated\n\nWritten by `go test ./docs -update`, which plans every line. What is missing here is forwarded to PostgreSQL, and answered.\n")
	b.WriteString("Forms of statements are in [What is accelerated](statements.md).\n\n## Types\n\n")
	var names []string
	for _, k := range a.kinds {
		names = append(names, k.String())
	}
	var opaque []string
	for _, o := range slices.Concat(sqltype.Opaques(), sqltype.OpaqueExtensions()) {
		if array, is := strings.CutPrefix(o.Name, "_"); is {
			opaque = append(opaque, array+"[]")
			continue
		}
		opaque = append(opaque, o.Name)
	}
	fmt.Fprintf(b, "%s. A numeric column may have any precision: those of more than %d digits, or of none declared, hold values of\ntheir own scale. Below it is numeric(10,2), of which an operand of more digits may differ. Intervals that are computed are differences of timestamps.\nColumns of %s are\ncopied, too, but only returned as they are (by CASE, outer joins, UNION ALL and window functions, too), tested for NULL and counted.\nIntervals of any fields and citext are compared, ordered, joined and grouped as well; min() and max() of citext where the database's collation is C. A group of equal\nvalues that print apart ('1 mon' and '30 days', 'a' and 'A') is forwarded where one of them is shown, and so is citext under another collation than the database's.\nA column of a domain is one of the type that the domain is over, but for arrays and enums.\n\n## Operators\n\n", strings.Join(names, ", "), vector.NumericMaxPrecision, strings.Join(opaque, ", "))
	for _, op := range []struct{ title, form string }{
		{"= <>, IN, IS DISTINCT FROM, NULLIF", "%s = %s"}, {"< <= > >=, BETWEEN", "%s < %s"}, {"+", "%s + %s"}, {"-", "%s - %s"}, {"\\*", "%s * %s"}, {"/", "%s / %s"}, {"%", "%s %% %s"}, {"\\|\\|", "%s || %s"},
	} {
		fmt.Fprintf(b, "| %s | with |\n|---|---|\n", op.title)
		a.matrix(b, func(l, r vector.Kind) string { return fmt.Sprintf(op.form, ofKind(l), ofKind(r)) })
		b.WriteString("\n")
	}
	b.WriteString("Over groups, numerics are divided, too. AND, OR, NOT, IS [NOT] NULL, IS [NOT] TRUE, FALSE and UNKNOWN, CASE, COALESCE, GREATEST and LEAST of up to four values; LIKE, `^@`,\nILIKE, ~, ~\\*, !~ and !~\\* with a constant pattern, the latter of regular expressions that are characters, sets, ^ and $, groups, alternatives and quantifiers, and SIMILAR TO of these;\nBETWEEN SYMMETRIC; comparisons, IN and IS DISTINCT FROM of rows, `(a, b) < (1, 2)`; `= ANY` and `<> ALL` of a constant array, or of a parameter that is an array of integers, text or uuid; dates, timestamps and timestamptz + and - an interval; intervals of any fields compared, ordered, computed with and summed, not grouped;\nfields of `age()`; `date_bin()` of a constant stride; `AT TIME ZONE` of a name such as UTC or Europe/Berlin (no abbreviation), `date()`, num_nulls(), num_nonnulls(),\nand format() with a constant format of %s and %%. What depends on TimeZone is computed in the session's,\nby rules that the server is asked for once; a generate_series() and a window's RANGE of timestamptz only in UTC.\n\nOutside of C, ILIKE, lower() and upper() of letters outside of ASCII go by the cases that the server gives for the collation. It is asked for them once, when the first\nstatement has met such a letter: that one is forwarded, those behind it are answered. Left to the server are languages in which the case of a letter depends on those\nbeside it (Greek, Lithuanian, Turkish and Azeri of ICU), the lower case of Σ in ICU and pg_unicode_fast, and characters from U+34000 on.\n\n## Casts\n\n| from | to |\n|---|---|\n")
	a.matrix(b, func(l, r vector.Kind) string {
		if l == r {
			return ""
		}
		return ofKind(l) + "::" + strings.Replace(r.String(), "char", "bpchar", map[bool]int{true: 1}[r == vector.BPChar])
	})
	b.WriteString("\nAnd numerics, integers and text to numeric(p,s). Text is read where all versions of PostgreSQL read it alike under all settings: dates as\nyyyy-mm-dd, timestamptz with an offset; where a row has another, the statement is forwarded. Dates, timestamps and timestamptz are cast to text where DateStyle is ISO.\n\n## Functions\n\n| | result | |\n|---|---|---|\n")
	a.functions(t, b)
	a.documents(t, b)
	a.constants(t, b)
	b.WriteString("\nFunctions that return rows, in FROM, ROWS FROM and WITH ORDINALITY or without, and in a select list: `generate_series()` (in FROM alone, and not in\nROWS FROM), `unnest()` of arrays, and `jsonb_array_elements()`, `jsonb_array_elements_text()`, `jsonb_each()`, `jsonb_each_text()` and `jsonb_object_keys()`, of json also.\nThose in a select list stand neither within each other, nor beside window functions; over groups they are keys.\n")
	b.WriteString("\n## Aggregates\n\nWith DISTINCT and FILTER; count(*), too.\n\n| | of |\n|---|---|\n")
	a.aggregates(t, b)
	b.WriteString("\nAnd `string_agg(text, constant)` and `array_agg` of what is no array or char(n), with ORDER BY or DISTINCT, and `mode()`, not of grouping sets; percentiles of an array of constants.\n")
	return b.String()
}

func (a *asker) aggregates(t *testing.T, b *strings.Builder) {
	for _, f := range sqlfn.Aggregates {
		if f.Star {
			continue
		}
		var of []string
		for _, k := range a.kinds {
			call := f.Names[0] + "(" + ofKind(k) + ")"
			if f.OrderedSet() {
				call = f.Names[0] + "(0.5) WITHIN GROUP (ORDER BY " + ofKind(k) + ")"
			}
			if a.result(call) != "" {
				of = append(of, k.String())
			}
		}
		if len(of) == 0 {
			t.Errorf("%s is of nothing", f)
		}
		list := strings.Join(of, ", ")
		if len(of) == len(a.kinds) {
			list = "all types"
		}
		fmt.Fprintf(b, "| `%s` | %s |\n", strings.Join(f.Names, "`, `"), list)
	}
}

func (a *asker) functions(t *testing.T, b *strings.Builder) {
	all := slices.Clone(sqlfn.All())
	slices.SortStableFunc(all, func(x, y sqlfn.Function) int { return strings.Compare(x.Name, y.Name) })
	for _, f := range all {
		var signature, args, notes []string
		for i, p := range f.Args {
			if p.Constants == nil {
				signature, args = append(signature, p.Kind.String()), append(args, ofKind(p.Kind))
				continue
			}
			signature, args = append(signature, "constant"), append(args, "'"+p.Constants[0]+"'")
			if p.Also != nil {
				notes = append(notes, fmt.Sprintf("argument %d is a pattern such as %s", i+1, strings.Join(p.Constants, ", ")))
				continue
			}
			notes = append(notes, fmt.Sprintf("argument %d is one of %s", i+1, strings.Join(p.Constants, ", ")))
		}
		call := fmt.Sprintf("%q(%s)", f.Name, strings.Join(args, ", "))
		if a.result(call) != f.Result.String() {
			t.Errorf("%s has result %q, not %s", call, a.result(call), f.Result)
		}
		if f.Zone == sqlfn.SessionZone {
			notes = append(notes, "in the session's time zone")
		}
		if f.Variadic {
			note := "any number of arguments, of booleans, integers, numerics, dates and times, too, but not of char"
			if f.Args[0].Kind.IsDocument() {
				note = "any number of texts"
			}
			notes = append(notes, note)
		}
		switch {
		case f.CanCases():
			notes = append(notes, "of letters outside of ASCII by the collation's cases (see ILIKE); not in languages with a dotless i")
		case f.InASCII != nil:
			notes = append(notes, "of letters outside of ASCII only in C, and not in languages with a dotless i")
		}
		fmt.Fprintf(b, "| `%s(%s)` | %s | %s |\n", f.Name, strings.Join(signature, ", "), f.Result, strings.Join(notes, "; "))
	}
}

// TestSQL compares sql.md with what is planned.
func TestSQL(t *testing.T) {
	cat, kinds := everyKind()
	want := (&asker{cat, kinds}).page(t)
	if *update {
		if err := os.WriteFile("sql.md", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile("sql.md"); err != nil || string(got) != want {
		t.Errorf("sql.md is not what is planned (go test ./docs -update): %v", err)
	}
}
