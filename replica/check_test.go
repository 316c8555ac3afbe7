package replica

import (
	"context"
	"strings"
	"testing"
	"time"

	"pgaccel/internal/pgserver"
)

// finding returns the finding on a subject.
func finding(t *testing.T, found []Finding, subject string) Finding {
	t.Helper()
	for _, f := range found {
		if f.Subject == subject {
			return f
		}
	}
	t.Fatalf("nothing about %s: %+v", subject, found)
	return Finding{}
}

// TestCheckNamesWhatMends runs the SQL of every error and expects no error after.
func TestCheckNamesWhatMends(t *testing.T) {
	url := database(t)
	c := connectTo(t, url)
	role := "r" + strings.ReplaceAll(queryText(t, c, "SELECT current_database()"), "t", "")
	mustExec(t, c, `CREATE ROLE `+role+` LOGIN; CREATE TYPE pair AS (x text, y int); CREATE TABLE good (id int PRIMARY KEY, j pair, t text); CREATE TABLE nokey (a int, u int NOT NULL UNIQUE);
		CREATE UNLOGGED TABLE fast (id int PRIMARY KEY); CREATE TABLE secret (id int PRIMARY KEY); CREATE ROLE `+role+`_owner; CREATE TABLE theirs (id int PRIMARY KEY); ALTER TABLE theirs OWNER TO `+role+`_owner; CREATE VIEW v AS SELECT 1 AS one;
		ALTER TABLE nokey OWNER TO `+role+`; ALTER TABLE good OWNER TO `+role+`; ALTER TABLE fast OWNER TO `+role)
	as := strings.Replace(url, "postgres://postgres@", "postgres://"+role+"@", 1)
	check := func() []Finding {
		found, err := Check(context.Background(), as, []string{"public.*"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	found := check()
	for subject, want := range map[string]struct {
		level Level
		sql   string
	}{
		"server version": {LevelOK, ""}, "wal_level": {LevelOK, ""}, "primary": {LevelOK, ""}, "max_replication_slots": {LevelOK, ""},
		"CREATE on the database": {LevelError, "GRANT CREATE ON DATABASE"}, "replication": {LevelError, `ALTER ROLE "` + role + `" REPLICATION`},
		"table public.good": {LevelWarn, ""}, "table public.nokey": {LevelError, `ALTER TABLE "public"."nokey" REPLICA IDENTITY USING INDEX "nokey_u_key"`},
		"table public.fast": {LevelError, `ALTER TABLE "public"."fast" SET LOGGED`}, "table public.secret": {LevelError, `ALTER TABLE public.secret OWNER TO ` + role},
		"table public.theirs": {LevelError, `GRANT ` + role + `_owner TO ` + role},
		"table public.v":      {LevelWarn, ""},
	} {
		if f := finding(t, found, subject); f.Level != want.level || !strings.HasPrefix(f.SQL, want.sql) {
			t.Errorf("%+v, want %s with %q", f, want.level, want.sql)
		}
	}
	auto, err := Check(context.Background(), as, []string{"auto", "nokey"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for subject, want := range map[string]Level{"table public.nokey": LevelError, "table public.fast": LevelWarn, "table public.theirs": LevelWarn} { // auto leaves what it cannot copy
		if f := finding(t, auto, subject); f.Level != want || f.SQL == "" {
			t.Errorf("%+v, want %s", f, want)
		}
	}
	if f := finding(t, found, "table public.good"); !strings.Contains(f.Text, "j (type public.pair)") {
		t.Errorf("%+v", f)
	}
	without := start(t, as, Config{})
	eventually(t, "the log says what helps", func() bool {
		return without.Err() != nil && strings.Contains(without.Err().Error(), "(SQLSTATE 42501): pgaccel check has the SQL")
	})
	without.Close()
	for _, f := range found {
		if f.Level == LevelError {
			mustExec(t, c, f.SQL)
		}
	}
	for _, f := range check() {
		if f.Level == LevelError {
			t.Errorf("still: %+v", f)
		}
	}
	r := start(t, as, Config{})
	ready(t, r)
	n := 0
	for _, st := range r.cfg.Store.Statuses() {
		if st.State.String() == "ready" {
			n++
		}
	}
	if n != 5 {
		t.Errorf("%d tables ready, want 5: %+v", n, r.cfg.Store.Statuses())
	}
	// The database's owner drops it after the test, and the role with it.
	r.Close()
}

func TestCheckOfAServerWithoutLogicalDecoding(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := pgserver.Start(ctx, pgserver.Options{Settings: map[string]string{"wal_level": "replica", "max_replication_slots": "0", "shared_buffers": "16MB"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	found, err := Check(ctx, s.URL("postgres", "postgres"), []string{"nothing"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, subject := range []string{"wal_level", "max_replication_slots"} {
		if f := finding(t, found, subject); f.Level != LevelError || !strings.HasPrefix(f.SQL, "ALTER SYSTEM SET "+subject) {
			t.Errorf("%+v", f)
		}
	}
	if f := finding(t, found, "tables"); f.Level != LevelWarn {
		t.Errorf("%+v", f)
	}
	// Replication keeps trying and says why; nothing hangs.
	r := start(t, s.URL("postgres", "postgres"), Config{})
	eventually(t, "the reason is known", func() bool { return r.Err() != nil && strings.Contains(r.Err().Error(), "slot") })
	if r.Ready() {
		t.Error("ready without a stream")
	}
	r.Close()
}
