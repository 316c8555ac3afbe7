package sqltype

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/vector"
)

// TestTypesAreTheServers compares the table with pg_type and pg_cast.
func TestTypesAreTheServers(t *testing.T) {
	conn := realPostgres(t)
	var oids []string
	for _, k := range vector.Kinds() {
		typ := Of(k)
		oids = append(oids, fmt.Sprint(typ.OID))
		if typ.Kind != k || KindOf(typ.OID) != k || OID(k) != typ.OID {
			t.Errorf("%s has the entry of %s, its OID %d is of %s", k, typ.Kind, typ.OID, KindOf(typ.OID))
		}
		got := fmt.Sprintf("%d %s %c %t", typ.OID, typ.Name, typ.Category, typ.Preferred)
		rows := query(t, conn, fmt.Sprintf("SELECT concat_ws(' ', oid, typname, typcategory, typispreferred::text), typlen FROM pg_type WHERE oid = '%s'::regtype", k))
		if got != rows[0][0] {
			t.Errorf("%s: %s, the server has %s", k, got, rows[0][0])
		}
		if length := fmt.Sprint(typ.Size); length != rows[0][1] && !(typ.Size == 0 && (rows[0][1] == "-1" || k == vector.Name)) {
			t.Errorf("%s has %s bytes in binary, the server's typlen is %s", k, length, rows[0][1])
		}
		if rows := query(t, conn, fmt.Sprintf("SELECT count(*) FROM pg_proc p JOIN pg_type t ON t.typname = '%s' WHERE p.proname IN ('min', 'max') AND p.prokind = 'a' AND pronargs = 1 AND proargtypes[0] IN (t.oid, CASE t.typname WHEN 'varchar' THEN 25 ELSE 0 END)", typ.Name)); (rows[0][0] == "0") != typ.NoExtremes {
			t.Errorf("the server has %s of the functions min and max of %s", rows[0][0], k)
		}
		if k.IsString() && !k.IsText() && typ.AppendString == nil || !k.IsString() && k != vector.Numeric && (typ.Word == nil || typ.AppendBinary == nil || typ.AppendText == nil || typ.ParseWord == nil) {
			t.Errorf("%s lacks a function", k)
		}
	}
	list := strings.Join(oids, ", ")
	want := map[string]bool{}
	for _, row := range query(t, conn, "SELECT castsource, casttarget FROM pg_cast WHERE castcontext = 'i' AND castsource <> casttarget AND castsource IN ("+list+") AND casttarget IN ("+list+")") {
		want[row[0]+" "+row[1]] = true
	}
	for _, k := range vector.Kinds() {
		for _, to := range Of(k).Implicit {
			pair := fmt.Sprintf("%d %d", OID(k), OID(to))
			if !want[pair] {
				t.Errorf("the server has no implicit cast from %s to %s", k, to)
			}
			delete(want, pair)
		}
	}
	for pair := range want {
		t.Errorf("the implicit cast %s is not known", pair)
	}
}

// TestValuesSort compares the order of each type's samples with the server's, and
// asks it for the ends of its range.
func TestValuesSort(t *testing.T) {
	conn := realPostgres(t)
	query(t, conn, "SET datestyle = 'ISO, MDY'; SET timezone = 'UTC'; SET extra_float_digits = 1")
	for _, k := range vector.Kinds() {
		typ := Of(k)
		if k.IsText() || k.IsDocument() || k == vector.Numeric {
			continue
		}
		if k.IsString() {
			sortsBytewise(t, conn, typ)
			continue
		}
		word := func(s string) int64 {
			v, ok := typ.ParseWord(s)
			if !ok {
				t.Fatalf("%s %q is not read", k, s)
			}
			if k.IsFloat() {
				v = vector.FloatKey(v)
			}
			return v
		}
		var list []string
		for _, s := range typ.Samples {
			list = append(list, "('"+s+"'::"+typ.Name+")")
		}
		var words []int64
		for _, row := range query(t, conn, "SELECT v FROM (VALUES "+strings.Join(list, ", ")+") l(v) ORDER BY v") {
			words = append(words, word(row[0]))
		}
		if !slices.IsSorted(words) {
			t.Errorf("%s: the server's order is %d", k, words)
		}
		for i, s := range typ.Samples { // equal only where the server says so
			for _, o := range typ.Samples[:i] {
				equal := query(t, conn, fmt.Sprintf("SELECT '%s'::%s = '%s'", s, typ.Name, o))[0][0] == "t"
				if equal != (cmp.Compare(word(s), word(o)) == 0) {
					t.Errorf("%s: %s = %s is %v", k, s, o, equal)
				}
			}
		}
		if !typ.Ranged() {
			continue
		}
		for _, v := range []int64{typ.Least, typ.Greatest} {
			s := string(typ.AppendText(nil, v))
			if got := query(t, conn, fmt.Sprintf("SELECT '%s'::%s", s, typ.Name))[0][0]; got != s {
				t.Errorf("%s: %d is %s, the server says %s", k, v, s, got)
			}
		}
		for _, v := range []int64{typ.Least - 1, typ.Greatest + 1} {
			if typ.valid(v) {
				continue // 64 bits end there, too, or it is infinite
			}
			raw := typ.AppendBinary(nil, v)
			if _, ok := typ.Receive(raw); ok && typ.Word(raw) == v {
				t.Errorf("%s: %d is received, beyond the range", k, v)
			}
		}
		if typ.Infinity != 0 && (string(typ.AppendText(nil, typ.NegInfinity)) != "-infinity" || string(typ.AppendText(nil, typ.Infinity)) != "infinity") {
			t.Errorf("%s: infinities %d and %d", k, typ.NegInfinity, typ.Infinity)
		}
	}
}

// sortsBytewise compares the order of a type held as strings.
func sortsBytewise(t *testing.T, conn *pgconn.PgConn, typ *Type) {
	t.Helper()
	var strs []string
	for _, row := range query(t, conn, "SELECT v FROM (VALUES ('"+strings.Join(typ.Samples, "'::"+typ.Name+"), ('")+"'::"+typ.Name+")) l(v) ORDER BY v") {
		d, ok := typ.Parse(row[0])
		if !ok {
			t.Fatalf("%s %q is not read", typ.Name, row[0])
		}
		strs = append(strs, d.Str)
	}
	if !slices.IsSorted(strs) {
		t.Errorf("%s: the server's order is %q", typ.Name, strs)
	}
}
