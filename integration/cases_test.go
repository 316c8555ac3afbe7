package integration

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/internal/pgserver"
)

// letters have strings with letters outside of ASCII, in columns of several collations.
const letters = `CREATE TABLE letters (id int PRIMARY KEY, city text COLLATE "C.utf8", root text COLLATE "und-x-icu", bytes text COLLATE "C", turkish text COLLATE "tr-x-icu", greek text COLLATE "el-x-icu", sigma text COLLATE "und-x-icu");
INSERT INTO letters SELECT i, s, s, s, s, s, 'ΑΣ' FROM (SELECT i, (ARRAY['São Paulo', 'SÃO PAULO', 'straße', 'STRASSE', 'Straße', 'ẞ', 'Zürich', 'ZÜRICH', 'İzmir', 'ıI', 'ŉ', 'ǰ', 'ǅ', 'Ǆ',
	'ა', 'Ა', 'Ꭰ', 'ꭰ', '𐐀', '𐐨', 'ΌΔΌΣ', 'όδός', '𠮷野屋', 'K', 'k%É_', 'plain', 'PLAIN', '', 'e' || chr(769), 'É'])[i % 31 + 1] FROM generate_series(1, 6000) i) AS x(i, s);
CREATE TABLE plain (id int PRIMARY KEY, city text);
INSERT INTO plain SELECT i, (ARRAY['Berlin', 'PARIS'])[i % 2 + 1] FROM generate_series(1, 3000) i;
VACUUM ANALYZE`

// ofLetters are statements that change the case of letters, or ignore it, in collations whose cases are known.
var ofLetters = []string{
	"SELECT count(*), sum(id) FROM letters WHERE city ILIKE '%paulo%'",
	"SELECT count(*), sum(id) FROM letters WHERE city ILIKE '%SÃO%'",
	"SELECT count(*), sum(id) FROM letters WHERE city NOT ILIKE 'z_rich'",
	"SELECT count(*), sum(id) FROM letters WHERE city ILIKE 'K\\%é\\_' OR city ILIKE '%ß'",
	"SELECT id FROM letters WHERE id < 40 AND (city ILIKE 'ꭰ' OR city ILIKE '𐐀' OR city ILIKE 'Ა%' OR city ILIKE 'ǆ') ORDER BY id",
	"SELECT count(*), sum(id) FROM letters WHERE lower(city) = 'straße'",
	"SELECT count(*), sum(id) FROM letters WHERE lower(city) = lower('ZÜRICH') AND upper('ü') = 'Ü'",
	"SELECT upper(city), count(*) FROM letters GROUP BY upper(city) ORDER BY 2, 1",
	"SELECT lower(city), upper(city), city ILIKE '%i%', lower(city) LIKE '%é' FROM letters WHERE id <= 62 ORDER BY id",
	"SELECT count(DISTINCT upper(root)), max(upper(root)) FROM letters",
	"SELECT upper(root), count(*) FROM letters GROUP BY 1 HAVING upper(root) LIKE '%SS%' ORDER BY 1",
	"SELECT count(*), sum(id) FROM letters WHERE upper(root) = 'STRASSE' OR upper(root) = upper('ŉ')",
	"SELECT count(*), sum(id) FROM letters WHERE lower(bytes) = 'zÜrich' OR bytes ILIKE '%SÃO p%'",
	"SELECT count(*), sum(id) FROM letters WHERE lower(city) = ANY (ARRAY['são paulo', 'όδός', 'i̇zmir', 'É'])",
	"SELECT city ILIKE '%É%' AS e, count(*) FROM letters GROUP BY 1 ORDER BY 1",
	"SELECT x, count(*) FROM (SELECT lower(city) || length(root) AS x FROM letters) s GROUP BY 1 ORDER BY 2, 1 LIMIT 40",
}

// untilAccelerated asks a statement until pgaccel knows the cases of its collation, which it asks for when it forwards it.
func (s *stack) untilAccelerated(t *testing.T, conn *pgconn.PgConn, sql string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		before := s.queries(t, "accelerated")
		if a := ask(t, conn, sql, nil); a.err != "" {
			t.Fatal(a.err)
		}
		if s.queries(t, "accelerated") > before {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is not accelerated", sql)
		}
	}
}

// TestCasesOfLetters: the first statement that needs the cases of a collation is forwarded, those behind it are answered.
func TestCasesOfLetters(t *testing.T) {
	s := privateStack(t, letters)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	s.accelerates(t, 2, func() { // where all letters are of ASCII nothing is to be known
		for _, sql := range []string{"SELECT count(*) FROM plain WHERE city ILIKE '%ari%'", "SELECT upper(city), count(*) FROM plain GROUP BY 1 ORDER BY 1"} {
			if got, want := ask(t, proxy, sql, nil), ask(t, direct, sql, nil); got.String() != want.String() {
				t.Errorf("%s: %s", sql, got)
			}
		}
	})
	s.forwardsAll(t, func() {
		if got := ask(t, proxy, "SELECT count(*) FROM letters WHERE city ILIKE '%xyz%'", nil); got.err != "" || len(got.rows) != 1 {
			t.Error(got)
		}
	})
	s.untilAccelerated(t, proxy, "SELECT count(*) FROM letters WHERE city ILIKE '%xyz%'")
	s.untilAccelerated(t, proxy, "SELECT count(*) FROM letters WHERE upper(root) = 'X'")
	for _, sql := range ofLetters {
		for _, p := range protocols {
			s.accelerates(t, 1, func() {
				want := ask(t, direct, sql, p.format)
				if got := ask(t, proxy, sql, p.format); want.err != "" || len(want.rows) == 0 || got.String() != want.String() {
					t.Errorf("%s (%s): %s%s", sql, p.name, want.err, firstDifference([]byte(got.String()), []byte(want.String())))
				}
			})
		}
	}
	for _, sql := range []string{"SELECT count(*), sum(id) FROM letters WHERE city ILIKE $1", "SELECT count(*), sum(id) FROM letters WHERE lower(city) = lower($1)", "SELECT count(*) FROM letters WHERE lower(city) LIKE $1"} {
		for _, value := range []string{"%SÃO%", "ZÜRICH", "%plain%", "ΌΔΌΣ", "_", ""} {
			for _, p := range protocols[1:] {
				s.accelerates(t, 1, func() {
					want := ask(t, direct, sql, p.format, value)
					if got := ask(t, proxy, sql, p.format, value); want.err != "" || got.String() != want.String() {
						t.Errorf("%s of %q (%s): %s%s", sql, value, p.name, want.err, firstDifference([]byte(got.String()), []byte(want.String())))
					}
				})
			}
		}
	}
	// What depends on the letters beside is the server's: the sigma in ICU, and languages with rules of their own.
	for range 3 {
		s.forwardsAll(t, func() {
			for _, sql := range []string{"SELECT lower(sigma), count(*) FROM letters GROUP BY 1", "SELECT count(*) FROM letters WHERE sigma ILIKE '%ς'", "SELECT count(*) FROM letters WHERE root ILIKE 'ΌΔΌΣ'",
				"SELECT count(*) FROM letters WHERE turkish ILIKE '%i%'", "SELECT upper(turkish), count(*) FROM letters GROUP BY 1 ORDER BY 1", "SELECT upper(greek), count(*) FROM letters GROUP BY 1 ORDER BY 1"} {
				if got, want := ask(t, proxy, sql, nil), ask(t, direct, sql, nil); want.err != "" || got.String() != want.String() {
					t.Errorf("%s: %s", sql, strings.Join(got.rows, "\n"))
				}
			}
		})
		time.Sleep(500 * time.Millisecond) // until it is known that they are not known
	}
}

// TestCasesOfTheDatabase: text of the database's collation, and of no column, where letters outside of ASCII have a case.
func TestCasesOfTheDatabase(t *testing.T) {
	pg, err := pgserver.Start(t.Context(), pgserver.Options{Locale: "C.UTF-8"})
	if err != nil {
		t.Fatal(err)
	}
	s := &stack{pg: pg, direct: target{"direct", pg.Port, "postgres"}}
	s.stopAtEnd(t)
	direct := connect(t, s.direct.url("postgres"))
	must(t, direct, "CREATE TABLE cities (id int PRIMARY KEY, city text); INSERT INTO cities SELECT i, (ARRAY['São Paulo', 'SÃO PAULO', 'Όδός', 'plain'])[i % 4 + 1] FROM generate_series(1, 4000) i")
	if err := s.serve(t.Context(), pgaccelProgram(t)); err != nil {
		t.Fatal(err)
	}
	proxy := connect(t, s.proxy.url("postgres"))
	s.untilAccelerated(t, proxy, "SELECT count(*) FROM cities WHERE city ILIKE '%ã%'")
	for _, sql := range []string{"SELECT count(*), sum(id) FROM cities WHERE city ILIKE '%ã%'", "SELECT upper(city), count(*) FROM cities GROUP BY 1 ORDER BY 1", "SELECT count(*), sum(id) FROM cities WHERE lower(city) = lower('ΌΔΌς') OR city ILIKE 'S_O%'",
		"SELECT count(*) FROM cities WHERE (id::text || 'É') ILIKE '%é'"} {
		for _, p := range protocols {
			s.accelerates(t, 1, func() {
				want := ask(t, direct, sql, p.format)
				if got := ask(t, proxy, sql, p.format); want.err != "" || len(want.rows) == 0 || got.String() != want.String() {
					t.Errorf("%s (%s): %s%s", sql, p.name, want.err, firstDifference([]byte(got.String()), []byte(want.String())))
				}
			})
		}
	}
}
