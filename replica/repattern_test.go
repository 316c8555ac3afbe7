package replica

import (
	"strings"
	"testing"

	"pgaccel/colstore"
)

// count returns how often the part was logged.
func (b *logBuffer) count(part string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Count(b.text.String(), part)
}

// TestPatternsChange: tables come and go with the patterns, in the store and in the
// publication, and patterns that match nothing are named, each once.
func TestPatternsChange(t *testing.T) {
	url := database(t)
	c := connectTo(t, url)
	mustExec(t, c, "CREATE TABLE a (id int PRIMARY KEY); INSERT INTO a SELECT generate_series(1, 10); CREATE TABLE b (id int PRIMARY KEY); INSERT INTO b VALUES (1); CREATE TABLE p (id int PRIMARY KEY)")
	store := colstore.New(colstore.Options{})
	defer store.Close()
	log := &logBuffer{}
	r := start(t, url, Config{Store: store, Accelerate: []string{"a", "!secret", "publik.*,p"}, Logger: log.logger()})
	defer r.Close()
	ready(t, r)
	if log.count("matches no table") != 2 || log.count(`pattern=publik.*`) != 1 || log.count(`pattern=!secret`) != 1 {
		t.Errorf("the log:\n%s", log.text.String())
	}
	a, b := tableOID(t, c, "a"), tableOID(t, c, "b")
	waitState(t, store, a, colstore.StateReady)
	published := func(want string) {
		t.Helper()
		eventually(t, "published: "+want, func() bool {
			return queryText(t, c, "SELECT string_agg(tablename, ',' ORDER BY tablename) FROM pg_publication_tables") == want
		})
	}
	published("a,p")
	if err := r.SetPatterns([]string{"b", "publik.*", "p"}); err != nil {
		t.Fatal(err)
	}
	waitState(t, store, b, colstore.StateReady)
	published("b,p")
	eventually(t, "a is gone", func() bool {
		for _, st := range store.Statuses() {
			if st.OID == a {
				return false
			}
		}
		return true
	})
	mustExec(t, c, "INSERT INTO b VALUES (2); INSERT INTO a VALUES (11)")
	waitInsert(t, c, store)
	if err := r.SetPatterns([]string{"*.a", "b"}); err != nil {
		t.Fatal(err)
	}
	waitState(t, store, a, colstore.StateReady)
	published("a,b")
	for _, bad := range [][]string{{"a.b.c"}, {"!a"}, {}} {
		if err := r.SetPatterns(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
	if log.count("matches no table") != 2 {
		t.Errorf("the log:\n%s", log.text.String())
	}
	findings, err := Check(t.Context(), url, []string{"a", "sale"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range findings {
		if strings.HasPrefix(f.Subject, "pattern ") {
			n++
			if f.Subject != "pattern sale" || f.Level != LevelWarn {
				t.Errorf("%+v", f)
			}
		}
	}
	if n != 1 {
		t.Errorf("%d patterns are named: %+v", n, findings)
	}
}
