package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
)

// systemPython is Debian's interpreter: its packages are not another's.
const systemPython = "/usr/bin/python3"

func needPython(t *testing.T, module, pkg string) string {
	t.Helper()
	if err := exec.Command(systemPython, "-c", "import "+module).Run(); err != nil {
		t.Fatalf("%s has no module %s: apt-get install -y %s (or integration/install-clients.sh)", systemPython, module, pkg)
	}
	return systemPython
}

func (s *stack) session(t *testing.T, least int, env []string, command func(target) []string) {
	t.Helper()
	s.accelerates(t, least, func() {
		s.both(t, func(tg target) []byte {
			c := command(tg)
			return run(t, append(env, "PGTZ=UTC", "TZ=UTC"), nil, c[0], c[1:]...)
		})
	})
}

const sessionFile = "testdata/session.sql"

// The least counts are those executions whose form cannot be left to Postgres:
// plain SELECTs and those with parameters; cursors and row limits may be.

func TestPsycopg2(t *testing.T) {
	s, python := sharedStack(t), needPython(t, "psycopg2", "python3-psycopg2")
	s.session(t, 2*9+7+3, nil, func(tg target) []string {
		return []string{python, "clients/psycopg2_session.py", fmt.Sprint(tg.port), tg.db, sessionFile}
	})
}

func TestPsycopg3(t *testing.T) {
	s, python := sharedStack(t), needPython(t, "psycopg", "python3-psycopg")
	s.session(t, 4*(9+8)+2, nil, func(tg target) []string {
		return []string{python, "clients/psycopg3_session.py", fmt.Sprint(tg.port), tg.db, sessionFile}
	})
}

func TestAsyncpg(t *testing.T) {
	s, python := sharedStack(t), needPython(t, "asyncpg", "python3-asyncpg")
	s.session(t, 9+4+4+4+4+9+9, nil, func(tg target) []string {
		return []string{python, "clients/asyncpg_session.py", fmt.Sprint(tg.port), tg.db, sessionFile}
	})
}

func TestPsqlODBC(t *testing.T) {
	s, python := sharedStack(t), needPython(t, "pyodbc", "python3-pyodbc odbc-postgresql")
	t.Run("whole results", func(t *testing.T) {
		s.session(t, 2*(9+7), nil, func(tg target) []string {
			return []string{python, "clients/pyodbc_session.py", fmt.Sprint(tg.port), tg.db, sessionFile, "0"}
		})
	})
	t.Run("cursors", func(t *testing.T) {
		s.session(t, 0, nil, func(tg target) []string {
			return []string{python, "clients/pyodbc_session.py", fmt.Sprint(tg.port), tg.db, sessionFile, "1"}
		})
	})
}

func TestPgJDBC(t *testing.T) {
	s := sharedStack(t)
	java := need(t, "java", "apt-get install -y default-jdk-headless")
	jar := "/usr/share/java/postgresql.jar"
	if _, err := os.Stat(jar); err != nil {
		t.Fatalf("%v: apt-get install -y libpostgresql-jdbc-java (or integration/install-clients.sh)", err)
	}
	// Fetch size 0: 10 queries, 6 of them 8 times, 9 with parameters; two modes,
	// with and without autocommit; then 10 in REPEATABLE READ.
	s.session(t, 2*2*(10+6*8+9), nil, func(tg target) []string {
		return []string{java, "-XX:TieredStopAtLevel=1", "-cp", jar, "clients/JdbcSession.java", fmt.Sprint(tg.port), tg.db, sessionFile}
	})
}

func TestNodePostgres(t *testing.T) {
	s := sharedStack(t)
	node := need(t, "node", "apt-get install -y nodejs npm")
	modules, err := filepath.Abs("../build/node/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(modules, "pg-cursor")); err != nil {
		t.Fatalf("%v: npm install --prefix build/node pg@8 pg-cursor@2 (or integration/install-clients.sh)", err)
	}
	s.session(t, 10+7+7+2+10+2, []string{"NODE_PATH=" + modules}, func(tg target) []string {
		return []string{node, "clients/node_session.js", fmt.Sprint(tg.port), tg.db, sessionFile}
	})
}

// TestPgx runs the session in each of pgx's five query modes.
func TestPgx(t *testing.T) {
	s, ctx := sharedStack(t), context.Background()
	queries := sessionQueries(t)
	const withParams = "SELECT lo_shipmode, count(*), sum(lo_revenue), avg(lo_quantity) FROM lineorder WHERE lo_orderdate BETWEEN $1 AND $2 AND lo_discount = $3 GROUP BY 1 ORDER BY 1"
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			s.accelerates(t, 2*len(queries)+6+4, func() {
				s.both(t, func(tg target) (out []byte) {
					conn, err := pgx.Connect(ctx, tg.url("postgres", "&default_query_exec_mode="+mode))
					if err != nil {
						t.Fatal(err)
					}
					defer conn.Close(ctx)
					show := func(rows pgx.Rows, err error) {
						if err != nil {
							t.Fatal(err)
						}
						for _, f := range rows.FieldDescriptions() {
							out = fmt.Append(out, f, " ")
						}
						for rows.Next() {
							out = fmt.Appendf(out, "\n%q", rows.RawValues())
							values, err := rows.Values()
							out = fmt.Append(out, values, err)
						}
						out = fmt.Append(out, "\n", rows.CommandTag(), rows.Err(), "\n")
					}
					for range 2 {
						for _, q := range queries {
							show(conn.Query(ctx, q))
						}
					}
					for i := range 6 {
						show(conn.Query(ctx, withParams, 19920101+i*10000, 19921231+i*10000, i))
					}
					err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
						for _, q := range queries[:4] {
							show(tx.Query(ctx, q))
						}
						return nil
					})
					if err != nil {
						t.Error(err)
					}
					var batch pgx.Batch
					for _, q := range queries[:5] {
						batch.Queue(q)
					}
					batch.Queue("SELECT 1/0")
					batch.Queue(queries[0])
					results := conn.SendBatch(ctx, &batch)
					for range queries[:5] {
						show(results.Query())
					}
					_, err = results.Exec()
					out = fmt.Appendln(out, err, results.Close())
					var n int
					err = conn.QueryRow(ctx, queries[0]).Scan(&n)
					return fmt.Appendln(out, n, err)
				})
			})
		})
	}
}

// TestClientsAnswerAlike asserts that session.sql itself is what the counts above
// suppose: ten statements, each with an answer.
func TestClientsAnswerAlike(t *testing.T) {
	s := sharedStack(t)
	queries := sessionQueries(t)
	if len(queries) != 10 {
		t.Fatalf("%d queries, want 10", len(queries))
	}
	conn := connect(t, s.direct.url("postgres"))
	for _, q := range queries {
		if a := ask(t, conn, q, nil); len(a.rows) == 0 || a.err != "" {
			b, _ := json.Marshal(a.rows)
			t.Errorf("%s: %s %s", q, b, a.err)
		}
	}
}
