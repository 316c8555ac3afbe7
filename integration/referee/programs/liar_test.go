package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// lie answers from a session of its own what is asked through a pgaccel that is not
// there: plain reads of tables, before the transaction's first write. (Own writes
// unseen would be too easy to notice.)
func lie(t *testing.T, answers func(side *session, sql string, args []any) (answer, bool)) func(s *session, sql string, args []any) (answer, bool) {
	var mu sync.Mutex
	var side *session
	wrote := map[*session]bool{}
	t.Cleanup(func() {
		if side != nil {
			side.close()
		}
	})
	return func(s *session, sql string, args []any) (answer, bool) {
		mu.Lock()
		defer mu.Unlock()
		switch word, _, _ := strings.Cut(sql, " "); word {
		case "BEGIN", "COMMIT", "ROLLBACK":
			wrote[s] = false
		case "UPDATE", "INSERT", "DELETE":
			wrote[s] = true
		}
		if !strings.HasPrefix(sql, "SELECT") || !strings.Contains(sql, " FROM ") || strings.Contains(sql, "pg_") || wrote[s] {
			return answer{}, false
		}
		if side == nil {
			// It must not wait for a lock for which others wait behind us.
			side = s.w.session("liar", direct, "SET lock_timeout = '50ms'")
		}
		return answers(side, sql, args)
	}
}

// stale answers what was true a moment ago.
func stale(age time.Duration) func(side *session, sql string, args []any) (answer, bool) {
	type old struct {
		answer answer
		at     time.Time
	}
	known := map[string]old{}
	return func(side *session, sql string, args []any) (answer, bool) {
		key := fmt.Sprint(sql, args)
		if o, ok := known[key]; ok && time.Since(o.at) < age {
			return o.answer, true
		}
		at := time.Now()
		a, err := side.do(sql, args...)
		known[key] = old{a, at}
		return a, err == nil
	}
}

// latest answers the latest committed state, whatever snapshot is asked for. Each
// answer is consistent in itself: no sum is torn.
func latest(side *session, sql string, args []any) (answer, bool) {
	a, err := side.do(sql, args...)
	return a, err == nil
}

// TestProgramsFindLies runs each program with a pgaccel that answers wrongly: the
// program must notice.
func TestProgramsFindLies(t *testing.T) {
	for _, c := range []struct {
		name, lie string
		answers   func(side *session, sql string, args []any) (answer, bool)
		want      string
	}{
		{"fence", "stale", stale(5 * time.Millisecond), "had been seen or acknowledged before|the last holder left|was notified"},
		{"mirror", "latest", latest, "two answers in one snapshot|with an imported snapshot"},
		{"append", "latest", latest, "append, keys from"},
		{"append", "stale", stale(5 * time.Millisecond), "append, keys from"},
		{"skew", "latest", latest, "schedule"},
		{"ddl-chaos", "stale", stale(time.Second), "after|accelerated and forwarded"},
	} {
		t.Run(c.name+"/"+c.lie, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			err := find(t, c.name).run(t.Context(), runOptions{seed: 1, duration: 20 * time.Second, out: t.Output(), histories: dir, lie: lie(t, c.answers)})
			if err == nil || !regexp.MustCompile(c.want).MatchString(err.Error()) {
				t.Errorf("got %v, want a violation: %s", err, c.want)
			}
			if files, _ := filepath.Glob(filepath.Join(dir, "programs-"+c.name+"-1.history")); len(files) != 1 {
				t.Errorf("no history was written: %v", files)
			}
		})
	}
}
