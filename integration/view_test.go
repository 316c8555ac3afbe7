package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// column returns the first value of each row.
func (a answer) column() string {
	var list []string
	for _, r := range a.rows {
		v, _, _ := strings.Cut(r, "|")
		list = append(list, strings.Trim(v, `"`))
	}
	return strings.Join(list, ",")
}

// TestViewRights asks for the relations of the schema pgaccel as roles with all, some
// and no rights: what a role may not see is neither in the answer nor in anything that
// it, or a reader of the server's log, can get to see of the statement.
func TestViewRights(t *testing.T) {
	s := privateStack(t, rightsSchema+`
CREATE ROLE watcher LOGIN;
GRANT pg_monitor TO watcher;
CREATE ROLE member LOGIN NOINHERIT;
GRANT pg_read_all_stats, reader TO member;
DROP VIEW secret_view, invoker_view;
ALTER SYSTEM SET log_statement = 'all';
SELECT pg_reload_conf();
`)
	// A statement of one role, whose text others are not to see.
	const marker = "marker_of_reader"
	reader := connect(t, s.proxy.url("reader"))
	s.accelerates(t, 1, func() { ask(t, reader, "SELECT sum(v) AS "+marker+" FROM secret", nil) })
	logged := func() string {
		text, err := os.ReadFile(filepath.Join(s.pg.Dir, "postgres.log"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	waitForLog := func(conn *pgconn.PgConn) {
		end := fmt.Sprintf("end of part %d", time.Now().UnixNano())
		ask(t, conn, "SELECT '"+end+"'", nil)
		for stop := time.Now().Add(30 * time.Second); !strings.Contains(logged(), end); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(stop) {
				t.Fatal("the server logs nothing")
			}
		}
	}
	const all = "public.ruled,public.secret"
	for _, c := range []struct {
		role, set       string
		tables, columns string
		texts           bool
	}{
		{"postgres", "", all, "g,id,owner,v,g,id,owner,v", true},
		{"watcher", "", all, "g,id,owner,v,g,id,owner,v", true},
		{"nobody_special", "", "", "", false},
		{"some_columns", "", "public.secret", "g,id", false},
		{"some_rows", "", "public.ruled", "g,id,owner,v", false},
		{"reader", "", all, "g,id,owner,v,g,id,owner,v", false},
		{"postgres", "SET ROLE nobody_special", "", "", false},
		{"postgres", "SET SESSION AUTHORIZATION some_columns", "public.secret", "g,id", false},
		{"postgres", "BEGIN; SET LOCAL ROLE watcher", all, "g,id,owner,v,g,id,owner,v", true},
		{"member", "", "", "", false}, // what a role inherits counts, not what it may become
		{"member", "SET ROLE reader", all, "g,id,owner,v,g,id,owner,v", false},
		{"member", "SELECT set_config('role', 'pg_read_all_stats', false)", all, "g,id,owner,v,g,id,owner,v", true},
	} {
		t.Run(c.role+" "+c.set, func(t *testing.T) {
			begin := len(logged())
			var said strings.Builder
			cfg, err := pgconn.ParseConfig(s.proxy.url(c.role))
			if err != nil {
				t.Fatal(err)
			}
			cfg.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { said.WriteString(n.Message + n.Detail + "\n") }
			conn, err := pgconn.ConnectConfig(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(context.Background())
			if c.set != "" {
				if a := ask(t, conn, c.set, nil); a.err != "" {
					t.Fatal(a.err)
				}
			}
			get := func(sql string, format []int16, params ...string) string {
				a := ask(t, conn, sql, format, params...)
				if a.err != "" {
					t.Errorf("%s: %s", sql, a.err)
				}
				said.WriteString(a.String() + "\n")
				return a.column()
			}
			for _, p := range protocols {
				if got := get("SELECT name FROM pgaccel.tables ORDER BY name", p.format); got != c.tables {
					t.Errorf("%s: tables %s, want %s", p.name, got, c.tables)
				}
				if got := get(`SELECT DISTINCT ON ("table", "column") "column" FROM pgaccel.columns WHERE "column" <> '(identity)' ORDER BY "table", "column"`, p.format); got != c.columns {
					t.Errorf("%s: columns %s, want %s", p.name, got, c.columns)
				}
				if got := get("SELECT device FROM pgaccel.devices", p.format); !strings.HasPrefix(got, "none") {
					t.Errorf("%s: devices %s", p.name, got)
				}
				// The text itself, and what can be got of it.
				if got := get("SELECT current_query() FROM pgaccel.queries LIMIT 1", p.format); strings.Contains(got, marker) || strings.Contains(got, "public.") {
					t.Errorf("%s: current_query() is %s", p.name, got)
				}
				if got := get("SELECT query FROM pg_stat_activity, pgaccel.tables WHERE pid = pg_backend_pid() UNION ALL SELECT 'none'", p.format); strings.Contains(got, "public.") {
					t.Errorf("%s: pg_stat_activity has %s", p.name, got)
				}
				want := "f"
				if c.texts {
					want = "t"
				}
				sql, params := "SELECT count(*) > 0 FROM pgaccel.queries WHERE query LIKE '%FROM secret%'", []string(nil)
				if p.format != nil {
					sql, params = "SELECT count(*) > 0 FROM pgaccel.queries WHERE query LIKE $1", []string{"%FROM secret%"}
				}
				if got := get(sql, p.format, params...); got != want && (p.format == nil || p.format[0] == 0) {
					t.Errorf("%s: texts shown: %s, want %s", p.name, got, want)
				}
			}
			if c.texts {
				return
			}
			for _, setting := range []string{"client_min_messages = 'log'", "debug_print_plan = on", "log_parameter_max_length_on_error = -1", "plan_cache_mode = force_custom_plan"} {
				if a := ask(t, conn, "SET "+setting, nil); a.err != "" {
					t.Errorf("SET %s: %s", setting, a.err)
				}
			}
			for _, p := range protocols {
				get("SELECT count(*) FROM pgaccel.queries, pgaccel.tables, pgaccel.columns", p.format)
				if a := ask(t, conn, "SELECT 1 / (count(*) - count(*)) FROM pgaccel.queries, pgaccel.tables, pgaccel.columns", p.format); !strings.Contains(a.err, "division by zero") {
					t.Errorf("no error: %s", a)
				} else {
					said.WriteString(a.String())
				}
			}
			waitForLog(conn)
			part := logged()[begin:]
			hidden := []string{marker}
			for _, name := range strings.Split(all, ",") {
				if !strings.Contains(c.tables, name) {
					hidden = append(hidden, name)
				}
			}
			for _, word := range hidden {
				if strings.Contains(said.String(), word) {
					t.Errorf("the client was told %s", word)
				}
				if strings.Contains(part, word) {
					t.Errorf("the server's log has %s", word)
				}
			}
			if c.tables != "" && !strings.Contains(part, "$1 = '{") {
				t.Error("no parameter in the log: what is looked for could not be there")
			}
		})
	}

	// What a superuser sees of another's session that shows texts is its own text, and
	// the log has none where it has no parameters.
	begin := len(logged())
	watcher, other := connect(t, s.proxy.url("postgres")), connect(t, s.direct.url("postgres"))
	ask(t, watcher, "SET log_parameter_max_length = 0", nil)
	for _, p := range protocols {
		if got := ask(t, watcher, "SELECT query FROM pgaccel.queries WHERE query LIKE '%marker%'", p.format).column(); !strings.Contains(got, marker) {
			t.Errorf("%s: the text is not shown: %s", p.name, got)
		}
		seen := ask(t, other, fmt.Sprintf("SELECT query FROM pg_stat_activity WHERE pid = %d", watcher.PID()), nil).column()
		if strings.Contains(seen, marker) || !strings.Contains(seen, "jsonb_to_recordset") {
			t.Errorf("%s: pg_stat_activity has %s", p.name, seen)
		}
	}
	waitForLog(watcher)
	if part := logged()[begin:]; strings.Contains(part, marker) || !strings.Contains(part, "jsonb_to_recordset") {
		t.Error("the server's log has the text")
	}

	// A prepared statement shows what is true, and what its role may see, at each Bind.
	if _, err := watcher.Prepare(t.Context(), "p", "SELECT count(*) FROM pgaccel.tables WHERE rows > $1", nil); err != nil {
		t.Fatal(err)
	}
	count := func() string {
		r := watcher.ExecPrepared(t.Context(), "p", [][]byte{[]byte("-1")}, nil, nil).Read()
		if r.Err != nil || len(r.Rows) != 1 {
			t.Fatal(r.Err)
		}
		return string(r.Rows[0][0])
	}
	var got []string
	for _, set := range []string{"RESET ROLE", "SET ROLE some_columns", "SET ROLE nobody_special", "SET ROLE watcher"} {
		ask(t, watcher, set, nil)
		got = append(got, count())
	}
	if want := []string{"2", "1", "0", "2"}; !slices.Equal(got, want) {
		t.Errorf("a prepared statement counts %v tables, want %v", got, want)
	}
	// In another client encoding, and a text that is not ASCII.
	ask(t, reader, `SELECT sum(v) AS "größe 𝄞" FROM secret`, nil)
	ask(t, watcher, "SET client_encoding = 'SQL_ASCII'", nil)
	if got := ask(t, watcher, "SELECT query FROM pgaccel.queries WHERE query LIKE '%gr%e%'", nil).column(); !strings.Contains(got, "größe 𝄞") {
		t.Errorf("a text that is not ASCII: %s", got)
	}
}
