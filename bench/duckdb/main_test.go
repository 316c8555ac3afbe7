package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/duckdb/duckdb-go/v2"
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

// questions are lines that ask for DIR's queries.
func questions(t *testing.T, dir string, runs int, names ...string) (lines string) {
	t.Helper()
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(dir, name+".sql"))
		if err != nil {
			t.Fatal(err)
		}
		line, err := json.Marshal(question{name, string(text), runs})
		if err != nil {
			t.Fatal(err)
		}
		lines += string(line) + "\n"
	}
	return lines
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
	dir := directory(t)
	out := program(t, questions(t, dir, 1, "q2")+questions(t, dir, 2, "q1"), "-dir", dir, "-serve")
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

// TestTypes: values are written as Postgres writes them, and come in its order.
func TestTypes(t *testing.T) {
	dir := t.TempDir()
	rows := "1\t2025-02-28 23:59:59.123456+00\tt\t-12.30\t0.1\tx\t1995-06-17\n2\t2025-03-01 00:00:00+00\tf\t\\N\t1e+30\t\\N\t\\N\n"
	for name, text := range map[string]string{
		"schema.sql": "CREATE TABLE a (i bigint NOT NULL, ts timestamptz NOT NULL, b boolean, n numeric(12,2), d double precision, s text, day date);\n",
		"a.tsv":      rows,
		"all.sql":    "SELECT * FROM a ORDER BY i",
		"nulls.sql":  "SELECT n FROM a ORDER BY n DESC",
		"sums.sql":   "SELECT sum(n), sum(i), count(*), avg(d) > 1, date_trunc('month', min(ts)), extract(hour FROM min(ts)) FROM a",
		"types.sql":  "SELECT typeof(i), typeof(ts), typeof(b), typeof(n), typeof(d), typeof(s), typeof(day) FROM a LIMIT 1",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out := program(t, questions(t, dir, 0, "all", "nulls", "sums", "types"), "-dir", dir, "-serve")
	var about loaded
	if err := out.Decode(&about); err != nil {
		t.Fatal(err)
	}
	if about.UsedBytes == 0 || about.UsedBytes > about.FileBytes || len(about.Storage) == 0 {
		t.Errorf("%+v", about)
	}
	var sum int64
	for _, s := range about.Storage {
		if s.Table != "a" || s.Bytes < 0 {
			t.Errorf("%+v", s)
		}
		sum += s.Bytes
	}
	if sum == 0 || sum > about.UsedBytes {
		t.Errorf("columns of %d bytes, %d in use", sum, about.UsedBytes)
	}
	for _, want := range []string{rows, "\\N\n-12.30\n", "-12.30\t3\t2\tt\t2025-02-01 00:00:00+00\t23\n", "BIGINT\tTIMESTAMP WITH TIME ZONE\tBOOLEAN\tDECIMAL(12,2)\tDOUBLE\tVARCHAR\tDATE\n"} {
		var a answer
		if err := out.Decode(&a); err != nil || a.Text != want {
			t.Errorf("%q, want %q: %v %s", a.Text, want, err, a.Error)
		}
	}
}

func TestAppendDecimal(t *testing.T) {
	for _, c := range []struct {
		value int64
		scale uint8
		want  string
	}{{0, 0, "0"}, {0, 2, "0.00"}, {5, 2, "0.05"}, {-5, 2, "-0.05"}, {-1230, 2, "-12.30"}, {7, 0, "7"}, {1000, 3, "1.000"}} {
		if got := appendDecimal(nil, duckdb.Decimal{Width: 18, Scale: c.scale, Value: big.NewInt(c.value)}); string(got) != c.want {
			t.Errorf("%d of scale %d: %s, want %s", c.value, c.scale, got, c.want)
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
