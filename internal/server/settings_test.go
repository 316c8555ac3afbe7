package server

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestSettings: settings of pgaccel's that are set wrongly fail as those of a module of the server's do, here PL/pgSQL's,
// with the same fields of the error and the same state of the transaction.
func TestSettings(t *testing.T) {
	b := newBench(t, 0)
	through, direct := b.through("postgres"), b.direct("postgres")
	b.exec(direct, "LOAD 'plpgsql'")
	version := b.said(direct, "SHOW server_version_num", -1)
	run := func(c *pgconn.PgConn, sql string, how int) string {
		var err error
		switch how {
		case 0:
			_, err = c.Exec(context.Background(), sql).ReadAll()
		case 1:
			err = c.ExecParams(context.Background(), sql, nil, nil, nil, nil).Read().Err
		case 2: // in the middle of a batch
			batch := &pgconn.Batch{}
			batch.ExecParams("SELECT 1", nil, nil, nil, nil)
			batch.ExecParams(sql, nil, nil, nil, nil)
			batch.ExecParams("SELECT 2", nil, nil, nil, nil)
			_, err = c.ExecBatch(context.Background(), batch).ReadAll()
		}
		said := "ok"
		var e *pgconn.PgError
		if errors.As(err, &e) {
			said = strings.Join([]string{e.Severity, e.Code, e.Message, e.Detail, e.Hint, e.File}, " | ")
		} else if err != nil {
			t.Fatal(err)
		}
		return said + " | " + string(c.TxStatus())
	}
	ours := strings.NewReplacer("plpgsql.variable_conflict", "pgaccel.mode", "plpgsql.", "pgaccel.", `"plpgsql"`, `"pgaccel"`, "use_column", "force", "USE_COLUMN", "FORCE", "Available values: error, use_variable, use_column.", "Available values: auto, off, force.")
	for _, sql := range []string{"SET plpgsql.variable_conflict = 'bogus'", "SET plpgsql.variable_conflict TO bogus", "SET plpgsql.variable_conflict = 17", "SET SESSION PlpgSQL.variable_conflict = 'it''s \\ odd;='",
		"SET LOCAL plpgsql.variable_conflict = bogus", "SET plpgsql.mood = 1", "SET LOCAL plpgsql.mood = 'x'", "SET plpgsql.mood TO DEFAULT", "RESET plpgsql.mood", "SHOW plpgsql.mood",
		"SET plpgsql.variable_conflict = 'use_column'", "SET plpgsql.variable_conflict = 'USE_COLUMN'", "RESET plpgsql.variable_conflict", "SET plpgsql.variable_conflict TO DEFAULT"} {
		if version < "150000" && strings.Contains(sql, "mood") {
			continue
		}
		for how := range 3 {
			for _, begin := range []string{"", "BEGIN", "BEGIN; SAVEPOINT s"} {
				if begin != "" {
					b.exec(direct, begin)
					b.exec(through, begin)
				}
				got, want := run(through, ours.Replace(strings.ReplaceAll(sql, "PlpgSQL.", "plpgsql.")), how), ours.Replace(run(direct, sql, how))
				if strings.Contains(sql, "PlpgSQL") {
					want = strings.ReplaceAll(want, "PlpgSQL.variable_conflict", "pgaccel.mode")
				}
				if got != want {
					t.Errorf("%s, %d, after %q:\n%s\nwant\n%s", sql, how, begin, got, want)
				}
				if begin != "" {
					b.exec(direct, "ROLLBACK")
					b.exec(through, "ROLLBACK")
				}
			}
		}
	}
	// Among other statements, too: nothing of the Query is done.
	if got := run(through, "SET work_mem = '5MB'; SET pgaccel.mode = 'bogus'; SELECT 1", 0); !strings.HasPrefix(got, `ERROR | 22023 | invalid value for parameter "pgaccel.mode": "bogus" |`) {
		t.Error(got)
	}
	if got := b.said(through, "SHOW work_mem", -1); got != "4MB\nSHOW" {
		t.Error(got)
	}
	for sql, want := range map[string]string{"SET pgaccel.max_staleness = 'a while'": `22023 | invalid value for parameter "pgaccel.max_staleness": "a while" |  |  |`,
		"SET pgaccel.max_staleness = '5 weeks'": `"pgaccel.max_staleness": "5 weeks" |  | Valid units for this parameter are "us", "ms", "s", "min", "h", and "d".`, "SET pgaccel.max_staleness = '5s'": "ok", "SET pgaccel.ties = 'forward'": "ok",
		"SET pgaccel.device = 'gpu'": "Available values: auto, cpu, cuda, emu."} {
		if got := run(through, sql, 0); !strings.Contains(got, want) {
			t.Errorf("%s: %s", sql, got)
		}
	}
	// An error of the server's own stays.
	if got := run(through, "SET client_min_messages = 'bogus'", 0); !strings.Contains(got, `"client_min_messages": "bogus"`) {
		t.Error(got)
	}
	// What is shown before anything is set is the default.
	fresh := b.connect(strings.Split(b.url(), "&options")[0])
	for _, format := range []int{-1, 0} {
		for name, want := range map[string]string{"mode": "auto", "max_staleness": "0", "reuse": "on"} {
			if got := b.said(fresh, "SHOW pgaccel."+name, format); !strings.HasPrefix(got, want+"\n") || format < 0 && got != want+"\nSHOW" {
				t.Errorf("SHOW pgaccel.%s, %d: %s", name, format, got)
			}
		}
	}
	b.exec(fresh, "SET pgaccel.mode = 'off'")
	if got := b.said(fresh, "SHOW pgaccel.mode", -1); got != "off\nSHOW" {
		t.Error(got)
	}
	if got := b.said(fresh, "SHOW pgaccel.mood", -1); got != `42704 unrecognized configuration parameter "pgaccel.mood"` {
		t.Error(got)
	}
	// Upper case means the same.
	b.exec(fresh, "SET pgaccel.mode = 'OFF'")
	before := b.accelerated()
	b.ask(fresh, "SELECT g, sum(v) FROM fact GROUP BY g", 0)
	b.exec(fresh, "SET pgaccel.mode = 'Force'")
	if n := b.accelerated() - before; n != 0 {
		t.Errorf("mode OFF: %d were accelerated", n)
	}
	b.ask(fresh, "SELECT g, sum(v) FROM fact GROUP BY g", 0)
	if n := b.accelerated() - before; n != 1 {
		t.Errorf("mode Force: %d were accelerated", n)
	}
}

func (b *bench) url() string {
	return "postgres://postgres@" + b.s.Addr().String() + "/postgres?sslmode=disable"
}
