package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// protocols are the ways to run a statement without a driver.
var protocols = []struct {
	name   string
	format []int16 // nil: simple
}{{"simple", nil}, {"extended text", []int16{0}}, {"extended binary", []int16{1}}}

func sessionQueries(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(sessionFile)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// ssbQueries returns the 13 queries of the Star Schema Benchmark by name.
func ssbQueries(t *testing.T) (names []string, text map[string]string) {
	t.Helper()
	files, err := filepath.Glob("../internal/ssb/sql/q*.sql")
	if err != nil || len(files) != 13 {
		t.Fatalf("%d queries in internal/ssb/sql, want 13 (%v)", len(files), err)
	}
	text = map[string]string{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(f), ".sql")
		names = append(names, name)
		text[name] = strings.TrimSuffix(strings.TrimSpace(string(b)), ";")
	}
	return names, text
}

// TestStarSchemaQueries runs the 13 queries and the session's in each protocol and
// format: description, rows, tag equal, and each of them accelerated.
func TestStarSchemaQueries(t *testing.T) {
	s := sharedStack(t)
	names, text := ssbQueries(t)
	for i, q := range sessionQueries(t) {
		name := fmt.Sprintf("session %d", i+1)
		names = append(names, name)
		text[name] = q
	}
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	for _, name := range names {
		for _, p := range protocols {
			t.Run(name+" "+p.name, func(t *testing.T) {
				s.accelerates(t, 1, func() {
					want := ask(t, direct, text[name], p.format)
					if want.err != "" || len(want.rows) == 0 {
						t.Errorf("the server itself: %d rows, %s", len(want.rows), want.err)
					}
					if got := ask(t, proxy, text[name], p.format); got.String() != want.String() {
						t.Errorf("%s", firstDifference([]byte(got.String()), []byte(want.String())))
					}
				})
			})
		}
	}
}

var tableOID = regexp.MustCompile(`/\d{5,}/`)

// TestSettingsThatChangeAnswers sets what changes the text of values: equal, whether
// accelerated or not.
func TestSettingsThatChangeAnswers(t *testing.T) {
	s := sharedStack(t)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	queries := sessionQueries(t)[5:]
	for _, set := range []string{"SET DateStyle = 'SQL, DMY'", "SET DateStyle = 'Postgres, MDY'", "SET DateStyle = 'German'", "SET TimeZone = 'America/St_Johns'",
		"SET TimeZone = 'GMT'", "SET extra_float_digits = 0", "SET extra_float_digits = 3", "SET extra_float_digits = -5", "SET client_encoding = 'LATIN1'",
		"SET client_encoding = 'SQL_ASCII'", "SELECT set_config('TimeZone', 'Asia/Kathmandu', false)", "BEGIN; SET LOCAL DateStyle = 'SQL, MDY'", "ROLLBACK", "RESET ALL",
		"SET search_path = pg_catalog, public", "SET search_path = nosuch", "DISCARD ALL", "SET default_transaction_isolation = 'serializable'", "RESET ALL",
		"CREATE TEMP TABLE typed AS SELECT * FROM public.typed WHERE id < 5", "DISCARD ALL"} {
		for _, c := range []string{set, "SHOW DateStyle", "SHOW TimeZone", "SHOW search_path"} {
			want, got := ask(t, direct, c, nil), ask(t, proxy, c, nil)
			if got.String() != want.String() {
				t.Errorf("%s: %s", c, firstDifference([]byte(got.String()), []byte(want.String())))
			}
		}
		for _, q := range queries {
			for _, p := range protocols {
				want, got := ask(t, direct, q, p.format), ask(t, proxy, q, p.format)
				if strings.HasPrefix(set, "CREATE TEMP") { // two tables, two OIDs
					want.fields, got.fields = tableOID.ReplaceAllString(want.fields, "/"), tableOID.ReplaceAllString(got.fields, "/")
				}
				if got.String() != want.String() {
					t.Errorf("%s, %s, %s: %s", set, p.name, q, firstDifference([]byte(got.String()), []byte(want.String())))
				}
			}
		}
	}
}

// TestSettingsInAPipeline changes settings in the same pipeline as the query: the
// server reports them only at its end.
func TestSettingsInAPipeline(t *testing.T) {
	s := sharedStack(t)
	const sql = "SELECT k, max(d), max(ts), max(tz), max(f8) FROM typed WHERE id < 600 GROUP BY k ORDER BY k"
	for _, set := range []string{"SET TimeZone = 'Asia/Tokyo'", "SET DateStyle = 'SQL, DMY'", "SELECT set_config('DateStyle', 'German', false)",
		"SET extra_float_digits = 0", "SET client_encoding = 'LATIN1'", "SET ROLE nobody_special", "SET pgaccel.mode = 'off'"} {
		s.both(t, func(tg target) []byte {
			conn := connect(t, tg.url("postgres"))
			ask(t, conn, sql, []int16{0})
			p := conn.StartPipeline(t.Context())
			// In a block: behind what the server has run in a pipeline without one, nothing is
			// answered here.
			for _, q := range []string{"BEGIN", set, sql, sql, "COMMIT", set, sql, sql} {
				p.SendQueryParams(q, nil, nil, nil, nil)
			}
			if err := p.Sync(); err != nil {
				t.Fatal(err)
			}
			out := []byte(set)
			for {
				r, err := p.GetResults()
				if err != nil || r == nil {
					out = fmt.Append(out, err)
					break
				}
				if reader, ok := r.(*pgconn.ResultReader); ok {
					result := reader.Read()
					out = fmt.Appendf(out, "%q %s %v\n", result.Rows, result.CommandTag, result.Err)
				}
				if _, ok := r.(*pgconn.PipelineSync); ok {
					break
				}
			}
			p.Close()
			return out
		})
	}
}
