package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain makes the test binary the program itself where the environment says so.
func TestMain(m *testing.M) {
	if os.Getenv("DUCKDB_PROGRAM") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func directory(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"schema.sql": "CREATE TABLE a (i integer NOT NULL, s varchar(10));\nCREATE TABLE b (j integer);\n",
		"keys.sql":   "this is not run",
		"a.tsv":      "1\tx, 'y\"\n2\t\\N\n3\t\n2147483647\tx\n",
		"b.tsv":      "7\n",
		"q1.sql":     "SELECT i, s, j FROM a, b ORDER BY i",
		"q2.sql":     "SELECT sum(i * 4::bigint), count(s), NULL FROM a",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func hashOf(rows string) string {
	sum := sha256.Sum256([]byte(rows))
	return fmt.Sprintf("%x", sum[:16])
}

var wantRows = map[string]string{
	"q1": "1\tx, 'y\"\t7\n2\t\\N\t7\n3\t\t7\n2147483647\tx\t7\n",
	"q2": "8589934612\t3\t\\N\n",
}

func program(t *testing.T, stdin string, args ...string) *json.Decoder {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "DUCKDB_PROGRAM=1")
	cmd.Stdin = strings.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	return json.NewDecoder(bytes.NewReader(out))
}

func TestBatch(t *testing.T) {
	var got loaded
	if err := program(t, "", "-dir", directory(t), "-threads", "1", "-rounds", "2", "-runs", "3").Decode(&got); err != nil {
		t.Fatal(err)
	}
	if len(got.Queries) != 2 || got.Version == "" || got.Threads != 1 || got.FileBytes == 0 {
		t.Fatalf("%+v", got)
	}
	for _, q := range got.Queries {
		if q.Hash != hashOf(wantRows[q.Query]) || q.Rows != strings.Count(wantRows[q.Query], "\n") || len(q.Ms) != 6 || q.MedianMs <= 0 {
			t.Errorf("%+v", q)
		}
	}
}

func TestServe(t *testing.T) {
	out := program(t, "q2 1\nq1 2\n", "-dir", directory(t), "-serve")
	var about loaded
	if err := out.Decode(&about); err != nil || about.Version == "" {
		t.Fatalf("%+v: %v", about, err)
	}
	for i, name := range []string{"q2", "q1"} {
		var a answer
		if err := out.Decode(&a); err != nil || a.Query != name || a.Hash != hashOf(wantRows[name]) || len(a.Ms) != i+1 || a.Error != "" {
			t.Errorf("%+v: %v", a, err)
		}
	}
}

func TestErrorsAreAnswers(t *testing.T) {
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	conn, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := measure(context.Background(), conn, "bad", "SELECT nothing", 1); err == nil || !strings.HasPrefix(err.Error(), "bad: ") {
		t.Errorf("error %v", err)
	}
}
