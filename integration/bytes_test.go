package integration

import (
	"fmt"
	"strings"
	"testing"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// bytesTable has a column of each kind that is held as bytes and not text, named as the type; the rows hold the
// types' samples, those with even numbers when pgaccel starts.
func bytesTable() (types []*sqltype.Type, schema, later string) {
	var samples [][]string
	columns, rows := []string{"id int PRIMARY KEY, g int"}, 40
	for _, k := range vector.Kinds() {
		if k.IsBytes() {
			types, samples = append(types, sqltype.Of(k)), append(samples, sqltype.Of(k).Samples)
			columns = append(columns, "c_"+sqltype.Of(k).Name+" "+sqltype.Of(k).Name)
		}
	}
	insert := func(from int) string {
		return insertSamples("held", samples, from, 3*rows, func(i int) string { return fmt.Sprintf("%d, %d", i, i%3) })
	}
	return types, "CREATE TABLE held (" + strings.Join(columns, ", ") + ");\n" + insert(0) + "VACUUM ANALYZE;", insert(1)
}

// TestBytes takes uuid, bytea, inet and cidr through the copy, the stream, plans and results.
func TestBytes(t *testing.T) {
	types, schema, later := bytesTable()
	s := privateStack(t, schema)
	direct, proxied := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	for _, sql := range []string{later, "UPDATE held SET id = id + 1000 WHERE id % 5 = 0", "DELETE FROM held WHERE id % 7 = 0"} {
		if a := ask(t, direct, sql, nil); a.err != "" {
			t.Fatal(a)
		}
	}
	for _, typ := range types {
		t.Run(typ.Name, func(t *testing.T) {
			c := "c_" + typ.Name
			if a := ask(t, direct, fmt.Sprintf("UPDATE held SET %s = '%s' WHERE id %% 11 = 0", c, typ.Samples[1]), nil); a.err != "" {
				t.Fatal(a)
			}
			for _, sql := range []string{"SELECT id, @ FROM held ORDER BY id", "SELECT @, count(*) FROM held GROUP BY @ ORDER BY @", "SELECT @, id FROM held ORDER BY @ DESC NULLS LAST, id LIMIT 20",
				"SELECT count(@), count(DISTINCT @) FROM held", "SELECT a.id, b.id, a.@ FROM held a JOIN held b ON a.@ = b.@ AND a.g = b.g ORDER BY 1, 2", "SELECT a.id, b.id FROM held a, held b WHERE a.@ < b.@ ORDER BY 1, 2 LIMIT 300",
				"SELECT DISTINCT @ FROM held ORDER BY 1", "SELECT @ FROM held WHERE g = 1 EXCEPT SELECT @ FROM held WHERE g = 2 ORDER BY 1", "SELECT id, lag(@) OVER (PARTITION BY g ORDER BY @, id), rank() OVER (ORDER BY @) FROM held ORDER BY id"} {
				s.everyAnswer(t, true, strings.ReplaceAll(sql, "@", c))
			}
			for _, sql := range []string{"SELECT id, @, quote_nullable(id) FROM held ORDER BY id", "SELECT @, exp(count(*)) FROM held GROUP BY @ ORDER BY @"} {
				sql = strings.ReplaceAll(sql, "@", c)
				want := ask(t, direct, sql, nil)
				s.inPart(t, 1, func() {
					if got := ask(t, proxied, sql, nil); want.err != "" || got.String() != want.String() {
						t.Errorf("%s: %s%s", sql, want.err, firstDifference([]byte(got.String()), []byte(want.String())))
					}
				})
			}
			if !typ.NoExtremes {
				s.everyAnswer(t, true, fmt.Sprintf("SELECT g, min(%s), max(%[1]s) FROM held GROUP BY g ORDER BY g", c))
			}
			if typ.Kind == vector.Bytea { // which has them from 18 on
				s.everyAnswer(t, serverMajor(t, direct) >= 18, fmt.Sprintf("SELECT g, min(%s), max(%[1]s) FILTER (WHERE id > 5) FROM held GROUP BY g ORDER BY g", c))
			}
			for i, v := range typ.Samples {
				next := typ.Samples[(i+1)%len(typ.Samples)]
				s.everyAnswer(t, true, fmt.Sprintf("SELECT id FROM held WHERE %s = '%s' ORDER BY id", c, v))
				s.everyAnswer(t, true, fmt.Sprintf("SELECT count(*), count(%s) FROM held WHERE %[1]s > '%s' OR %[1]s IN ('%[2]s', '%[3]s')", c, v, next))
				s.everyAnswer(t, true, fmt.Sprintf("SELECT id, coalesce(%s, '%s') FROM held WHERE %[1]s BETWEEN '%[2]s' AND %s '%s' OR %[1]s IS NULL ORDER BY id", c, v, typ.Name, next))
				s.everyAnswer(t, typ.Kind != vector.CIDR, fmt.Sprintf("SELECT count(*) FROM held WHERE %s >= $1", c), v) // the operator is inet's
			}
		})
	}
	bytesComputed(t, s)
	bytesForwarded(t, s)
	bytesEscaped(t, s)
}

// bytesForwarded asks for what is forwarded.
func bytesForwarded(t *testing.T, s *stack) {
	for _, sql := range []string{ // what is written otherwise than in a result, and operators that there are no plans of
		"SELECT c_bytea::text FROM held ORDER BY id", "SELECT c_inet::text FROM held ORDER BY id", "SELECT concat(c_inet, c_cidr) FROM held ORDER BY id", "SELECT 'x' || c_cidr FROM held ORDER BY id",
		"SELECT count(*) FROM held WHERE c_inet << '10.0.0.0/8'", "SELECT id FROM held WHERE c_inet = c_cidr ORDER BY id", "SELECT coalesce(c_inet, c_cidr) FROM held ORDER BY id", "SELECT max(c_cidr) FROM held", "SELECT host(c_inet) FROM held ORDER BY id",
		"SELECT c_inet FROM held UNION ALL SELECT c_cidr FROM held ORDER BY 1", "SELECT count(*) FROM held WHERE c_inet = '10'", "SELECT count(*) FROM held WHERE c_bytea LIKE c_bytea", "SELECT count(*) FROM held WHERE c_bytea LIKE 'a#%' ESCAPE '#'", "SELECT count(*) FROM held WHERE c_bytea LIKE E'a\\\\\\\\'", "SELECT c_inet + 1 FROM held WHERE id = 2", "SELECT c_inet - c_inet FROM held ORDER BY id", "SELECT c_inet & c_inet FROM held ORDER BY id", "SELECT c_bytea::int FROM held", "SELECT encode(c_bytea, 'base32') FROM held ORDER BY id", "SELECT get_byte(c_bytea, 0) FROM held ORDER BY id", "SELECT decode('a', 'hex') FROM held ORDER BY id", "SELECT string_agg(c_bytea, '\\x00' ORDER BY id) FROM held", "SELECT array_agg(c_inet ORDER BY id) FROM held"} {
		s.everyAnswer(t, false, sql)
	}
}

// bytesComputed asks for functions of bytea.
func bytesComputed(t *testing.T, s *stack) {
	for _, sql := range []string{
		"SELECT id, c_bytea || c_bytea, c_bytea || '\\x00ff', 'a' || c_bytea, length(c_bytea), octet_length(c_bytea), bit_length(c_bytea), md5(c_bytea), sha224(c_bytea), sha256(c_bytea), sha384(c_bytea), sha512(c_bytea) FROM held ORDER BY id",
		"SELECT id, encode(c_bytea, 'hex'), encode(c_bytea, 'BASE64'), encode(c_bytea, 'escape'), decode(encode(c_bytea, 'hex'), 'hex') = c_bytea, decode(encode(c_bytea, 'base64'), 'base64'), encode(sha512(c_bytea), 'base64') FROM held ORDER BY id",
		"SELECT id, substring(c_bytea FROM 2 FOR 1), substr(c_bytea, 2), position('\\x00'::bytea IN c_bytea), trim(' a'::bytea FROM c_bytea), overlay(c_bytea PLACING '\\xff' FROM 1 FOR 2) FROM held ORDER BY id",
		"SELECT id, get_byte(c_bytea, 0), get_bit(c_bytea, 7), set_byte(c_bytea, 0, 255), set_bit(c_bytea, 7, 1), bit_count(c_bytea) FROM held WHERE length(c_bytea) > 0 ORDER BY id",
		"SELECT substring(c_bytea, 1, 1), count(*), count(DISTINCT md5(c_bytea)) FROM held GROUP BY 1 ORDER BY 1", "SELECT max(length(c_bytea)), min(encode(c_bytea, 'hex') COLLATE \"C\"), sum(length(c_bytea || c_bytea)) FROM held",
		"SELECT a.id, b.id FROM held a JOIN held b ON sha256(a.c_bytea) = sha256(b.c_bytea) AND a.g = b.g ORDER BY 1, 2", "SELECT DISTINCT c_bytea || 'x' FROM held ORDER BY 1", "SELECT count(*) FROM held WHERE c_bytea LIKE 'a%'", "SELECT id, c_bytea LIKE '_', c_bytea NOT LIKE '%a%', c_bytea LIKE '%\\000%', c_bytea ~~ '\\x25'::bytea FROM held ORDER BY id", "SELECT id FROM held WHERE encode(c_bytea, 'hex') LIKE '61%' OR c_bytea || c_bytea > '\\x80' ORDER BY id",
		"SELECT id, rank() OVER (ORDER BY reverse(encode(c_bytea, 'hex')) COLLATE \"C\"), lag(c_bytea || '!') OVER (ORDER BY id) FROM held ORDER BY id", "SELECT id, coalesce(substr(c_bytea, 2), 'none'), CASE WHEN g = 1 THEN c_bytea || c_bytea ELSE c_bytea END FROM held ORDER BY id"} {
		s.everyAnswer(t, true, sql)
	}
	s.everyAnswer(t, true, "SELECT id FROM held WHERE encode(c_bytea, 'hex') = $1 ORDER BY id", "61")
	s.everyAnswer(t, true, "SELECT id, c_bytea || $1 FROM held WHERE length(c_bytea) > $2 ORDER BY id", `\x00`, "0")
}

// bytesEscaped asks under another bytea_output, which a function may set, too, and between the rows of a cursor.
func bytesEscaped(t *testing.T, s *stack) {
	direct, escape := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	alike := func(sql string, formats []int16) {
		t.Helper()
		if want, got := ask(t, direct, sql, formats), ask(t, escape, sql, formats); got.String() != want.String() {
			t.Errorf("%s: got %s, want %s", sql, got, want)
		}
	}
	const sql = "SELECT id, c_bytea, sha256(c_bytea) FROM held ORDER BY id"
	for _, set := range []string{"SET bytea_output = escape", "SELECT set_config('bytea_output', 'hex', false)", "SELECT set_config('bytea_output', 'escape', false)"} {
		alike(set, nil)
		s.accelerates(t, 4, func() {
			alike(sql, nil)
			alike(sql, []int16{0})
			alike(sql, []int16{1})
			alike("SELECT c_bytea, count(*) FROM held GROUP BY 1 ORDER BY 1", nil)
		})
	}
	for _, sql := range []string{"BEGIN", "DECLARE c CURSOR FOR SELECT id, c_bytea FROM held ORDER BY id", "FETCH 5 FROM c", "SET bytea_output = hex", "FETCH 5 FROM c", "FETCH 5 FROM c", "COMMIT",
		"BEGIN", "DECLARE c CURSOR FOR SELECT id, c_bytea FROM held ORDER BY id", "SET bytea_output = escape", "FETCH 5 FROM c", "FETCH 5 FROM c", "COMMIT"} {
		alike(sql, nil)
	}
	s.inPart(t, 1, func() { alike("SELECT id, c_bytea, quote_nullable(id) FROM held ORDER BY id", nil) })
	direct2, proxied := hijacked(t, s.direct, "postgres", "SET bytea_output = escape"), hijacked(t, s.proxy, "postgres", "SET bytea_output = escape")
	s.accelerates(t, 3, func() {
		for _, options := range []string{"", " CSV", " BINARY"} {
			copied := "COPY (SELECT id, c_bytea FROM held ORDER BY id) TO STDOUT" + options
			want := direct2.copies(func() { direct2.query(copied) })
			if got := proxied.copies(func() { proxied.query(copied) }); got != want {
				t.Errorf("%s: %s", copied, firstDifference([]byte(got), []byte(want)))
			}
		}
	})
}

// TestTimeTZ asks for what depends on the session's zone, on a precision or on casts: that is forwarded.
func TestTimeTZ(t *testing.T) {
	s := privateStack(t, "CREATE TABLE clock (id int PRIMARY KEY, z timetz, y timetz(1), t time, l pg_lsn, m macaddr8, a macaddr); "+
		"INSERT INTO clock SELECT i, timetz '00:00:00.26+00' + i * interval '1 hour', '12:34:56.78+02', time '00:00' + i * interval '1 hour', pg_lsn '0/0' + i, 'ff:ff:ff:ff:ff:ff:ff:ff', '08:00:2b:01:02:03' FROM generate_series(0, 40) i;\nVACUUM ANALYZE;")
	for _, sql := range []string{"SELECT id, z, y FROM clock ORDER BY z, y, id", "SELECT y, count(*), min(z), max(z) FROM clock GROUP BY y", "SELECT count(*) FROM clock WHERE z >= '05:00:00+02' AND z < '24:00:00+00'", "SELECT count(*) FROM clock WHERE z IN ('03:00:00.26+00', '04:00:00.26+00:00')",
		"SELECT count(*) FROM clock WHERE z = '05:00:00.26+02'", "SELECT id FROM clock WHERE z BETWEEN '01:00:00-02' AND '09:00:00-02' ORDER BY id", "SELECT id, z::text, l::text FROM clock ORDER BY id", "SELECT min(l), max(l), count(DISTINCT l) FROM clock WHERE l > '0/A'"} {
		s.everyAnswer(t, true, sql)
	}
	for _, sql := range []string{"SELECT id, z::timetz(0) FROM clock ORDER BY id", "SELECT count(*) FROM clock WHERE z = '05:00:00.26+02'::timetz(0)", "SELECT count(*) FROM clock WHERE z = '05:00:00'", "SELECT count(*) FROM clock WHERE z > '05:00'", "SELECT count(*) FROM clock WHERE z = t",
		"SELECT id, nullif(t, z) FROM clock ORDER BY id", "SELECT id, coalesce(t, z) FROM clock ORDER BY id", "SELECT count(*) FROM clock WHERE m = a", "SELECT l - '0/1' FROM clock ORDER BY id", "SELECT z FROM clock UNION SELECT t FROM clock ORDER BY 1", "SELECT count(*) FROM clock WHERE m > '08:00:2b:01:02:03'", "SELECT z AT TIME ZONE 'UTC' FROM clock ORDER BY id"} {
		s.everyAnswer(t, false, sql)
	}
}
