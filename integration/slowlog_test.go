package integration

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// slowLine is a line of the slow-query log, in JSON.
type slowLine struct {
	Msg, Query, Route, Reason, SQLState, Command, User, Database string
	Application                                                  string `json:"application_name"`
	PID                                                          uint32 `json:"server_pid"`
	Rows                                                         int
	Duration                                                     any
}

// slowLines returns the lines of a session.
func (s *stack) slowLines(t *testing.T, pid uint32) (list []slowLine) {
	t.Helper()
	text, err := os.ReadFile(s.log)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "secret") {
		t.Fatalf("a constant is in the log:\n%s", text)
	}
	for line := range strings.Lines(string(text)) {
		var one slowLine
		if json.Unmarshal([]byte(line), &one) == nil && one.Msg == "slow query" && one.PID == pid {
			list = append(list, one)
		}
	}
	return list
}

// TestSlowQueryLog: with --slow-query-log the log has each statement that takes so long, as pgaccel.queries shows it, whoever
// answers it and however it ends.
func TestSlowQueryLog(t *testing.T) {
	file := filepath.Join(t.TempDir(), "serve.yml")
	reloads := 0
	configure := func(least string) {
		t.Helper()
		if err := os.WriteFile(file, []byte("log-format: json\nslow-query-log: "+least+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	configure("off")
	s := privateStack(t, "CREATE TABLE sl (id int PRIMARY KEY, v int, t text);\nINSERT INTO sl SELECT g, g % 10, 'row' FROM generate_series(1, 1000) g", "--config", file)
	reload := func(least string) {
		t.Helper()
		configure(least)
		reloads++
		if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		s.logged(t, "is read anew", reloads)
	}
	c := connect(t, s.proxy.url("postgres")+"&application_name=reports")
	seen := 0
	next := func(what string, n int) []slowLine {
		t.Helper()
		waitFor(t, what+"'s lines", func() bool { return len(s.slowLines(t, c.PID())) >= seen+n })
		lines := s.slowLines(t, c.PID())[seen:]
		if seen += len(lines); len(lines) != n {
			t.Fatalf("%s: %d lines, want %d: %+v", what, len(lines), n, lines)
		}
		return lines
	}
	cancelled := func(sql string) func() {
		return func() {
			timer := time.AfterFunc(300*time.Millisecond, func() { c.CancelRequest(t.Context()) })
			defer timer.Stop()
			if a := ask(t, c, sql, nil); a.code != "57014" {
				t.Errorf("%s: %s", sql, a)
			}
		}
	}
	simple := func(sql string) func() { return func() { ask(t, c, sql, nil) } }
	ask(t, c, "SELECT count(*) FROM sl WHERE t <> 'secret'", nil) // while it is off
	reload("0")
	const counted = "SELECT count(*), max(t) FROM sl WHERE v > $1 AND t <> $2"
	for _, step := range []struct {
		name string
		do   func()
		want []slowLine
	}{
		{"accelerated", simple("SELECT count(*), max(t) FROM sl WHERE v > 5 AND t <> 'secret'"), []slowLine{{Query: counted, Route: "accelerated", Command: "SELECT", Rows: 1}}},
		{"accelerated, with parameters", func() { ask(t, c, counted, []int16{0}, "5", "secret") }, []slowLine{{Query: counted, Route: "accelerated", Command: "SELECT", Rows: 1}}},
		{"forwarded", simple("SELECT v, random() FROM sl WHERE t <> 'secret'"),
			[]slowLine{{Query: "SELECT v, random() FROM sl WHERE t <> $1", Route: "forwarded", Reason: "volatile", Command: "SELECT", Rows: 1000}}},
		{"relayed", simple("SELECT 'secret' FROM pg_namespace WHERE nspname = 'pg_catalog' /*controller='x',route='%2Fsecret'*/"),
			[]slowLine{{Query: "SELECT $1 FROM pg_namespace WHERE nspname = $2", Route: "forwarded", Reason: "no accelerated table", Command: "SELECT", Rows: 1}}},
		{"relayed, with parameters", func() { ask(t, c, "SELECT $1::text, 'secret'", []int16{0}, "secret") },
			[]slowLine{{Query: "SELECT $1::text, $2", Route: "forwarded", Reason: "no accelerated table", Command: "SELECT", Rows: 1}}},
		{"written", simple("UPDATE sl SET t = 'secret' WHERE id IN (1, 2)"),
			[]slowLine{{Query: "UPDATE sl SET t = $1 WHERE id IN ($2, $3)", Route: "forwarded", Reason: "not a plain SELECT", Command: "UPDATE", Rows: 2}}},
		{"a password", simple("CREATE ROLE sl_role PASSWORD 'secret'"), []slowLine{{Query: "CREATE ROLE sl_role PASSWORD $1", Route: "forwarded", Reason: "not a plain SELECT", Command: "CREATE ROLE"}}},
		{"failed", simple("SELECT v / 0 FROM sl WHERE t <> 'secret'"), []slowLine{{Query: "SELECT v / $1 FROM sl WHERE t <> $2", Route: "forwarded", Reason: "evaluation", SQLState: "22012"}}},
		{"not parsed", simple("SELEC 'secret'"), []slowLine{{Query: "<unparsable>", Route: "forwarded", Reason: "not a plain SELECT", SQLState: "42601"}}},
		{"COPY", simple("COPY (SELECT v, count(*) FROM sl WHERE t <> 'secret' GROUP BY v) TO STDOUT"),
			[]slowLine{{Query: "SELECT v, count(*) FROM sl WHERE t <> $1 GROUP BY v", Route: "accelerated", Command: "COPY", Rows: 10}}},
		{"a cursor", func() {
			for _, sql := range []string{"BEGIN", "DECLARE c CURSOR FOR SELECT id FROM sl WHERE t <> 'secret' ORDER BY id", "FETCH 100 FROM c", "FETCH 7 FROM c", "COMMIT"} {
				ask(t, c, sql, nil)
			}
		}, []slowLine{{Query: "BEGIN", Route: "forwarded", Reason: "not a plain SELECT", Command: "BEGIN"},
			{Query: "SELECT id FROM sl WHERE t <> $1 ORDER BY id", Route: "forwarded", Command: "DECLARE CURSOR"},
			{Query: "SELECT id FROM sl WHERE t <> $1 ORDER BY id", Route: "accelerated", Command: "FETCH", Rows: 100},
			{Query: "SELECT id FROM sl WHERE t <> $1 ORDER BY id", Route: "accelerated", Command: "FETCH", Rows: 7},
			{Query: "COMMIT", Route: "forwarded", Reason: "not a plain SELECT", Command: "COMMIT"}}},
		{"cancelled", cancelled("SELECT pg_sleep(60), 'secret'"), []slowLine{{Query: "SELECT pg_sleep($1), $2", Route: "forwarded", Reason: "no accelerated table", SQLState: "57014"}}},
	} {
		step.do()
		lines := next(step.name, len(step.want))
		for i, l := range lines {
			if l.User != "postgres" || l.Database != "postgres" || l.Application != "reports" || l.Duration == nil {
				t.Errorf("%s: %+v", step.name, l)
			}
			l.Msg, l.User, l.Database, l.Application, l.PID, l.Duration = "", "", "", "", 0, nil
			if l != step.want[i] {
				t.Errorf("%s: %+v, want %+v", step.name, l, step.want[i])
			}
		}
	}
	reload("1h")
	for _, sql := range []string{"SELECT count(*) FROM sl", "SELECT 1"} {
		ask(t, c, sql, nil)
	}
	reload("200ms") // and for the session that there is
	ask(t, c, "SELECT 1", nil)
	ask(t, c, "SELECT pg_sleep(0.3)", nil)
	if l := next("the last", 1); l[0].Query != "SELECT pg_sleep($1)" {
		t.Errorf("%+v", l)
	}
}
