package main

import (
	"strings"
	"testing"
)

func TestPaced(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"CREATE TABLE a (b int);\nINSERT INTO a VALUES (1);\nSELECT * FROM a;\nSELECT 1;\n",
			"CREATE TABLE a (b int);\nINSERT INTO a VALUES (1);\n" + waitLine + "\nSELECT * FROM a;\nSELECT 1;\n"},
		// Inside of statements, function bodies, data and blocks there is no place for it.
		{"CREATE TABLE a AS\nSELECT 1;\n", "CREATE TABLE a AS\nSELECT 1;\n"},
		{"CREATE TABLE a (b int);\nDO $$\nBEGIN;\nSELECT 1;\n$$;\n", "CREATE TABLE a (b int);\nDO $$\nBEGIN;\nSELECT 1;\n$$;\n"},
		{"CREATE TABLE a (b text);\nCOPY a FROM stdin;\nselect;\n\\.\n", "CREATE TABLE a (b text);\nCOPY a FROM stdin;\nselect;\n\\.\n"},
		{"BEGIN;\nCREATE TABLE a (b text);\nTABLE a;\nCOMMIT;\nTABLE a;\n", "BEGIN;\nCREATE TABLE a (b text);\nTABLE a;\nCOMMIT;\n" + waitLine + "\nTABLE a;\n"},
		{"CREATE TEMP TABLE a (b text);\n", "CREATE TABLE a (b text);\n"},
		{"SET extra_float_digits = 0;\n", "-- SET extra_float_digits = 0;\n"},
	} {
		if got := paced(c.script, true); got != c.want {
			t.Errorf("%q: %q, want %q", c.script, got, c.want)
		}
	}
}

func TestCompare(t *testing.T) {
	script := "SELECT a\n  FROM b;\n\n-- two rows\nTABLE c;\nTABLE d;\n"
	direct := "SELECT a\n  FROM b;\n 1\n\n-- two rows\nTABLE c;\n 1\n 2\nTABLE d;\n 3\n"
	if found := compare(script, direct, direct); len(found) > 0 {
		t.Errorf("an output differs from itself: %v", found)
	}
	proxied := strings.Replace(strings.Replace(direct, " 1\n 2\n", " 2\n 1\n", 1), " 3\n", "ERROR:  no\n", 1)
	found := compare(script, direct, proxied)
	if len(found) != 2 || !found[0].order || found[0].line != 5 || found[1].order || found[1].proxied != "ERROR:  no\n" {
		t.Errorf("found %v", found)
	}
}

func TestCompareLeavesPlansOut(t *testing.T) {
	script := "-- a plan\nexplain (costs off)\nSELECT 1;\nSELECT 2;\n"
	direct := "-- a plan\nexplain (costs off)\nSELECT 1;\n Result\nSELECT 2;\n 2\n"
	proxied := strings.Replace(direct, " Result\n", "INFO:  why\n Result\n", 1)
	if found := compare(script, direct, proxied); len(found) > 0 {
		t.Errorf("plans are compared: %v", found)
	}
}

func TestLogicStatements(t *testing.T) {
	text := "hash-threshold 8\n\nstatement ok\nCREATE TABLE a (b int)\n\nonlyif mysql # as DIV\nquery I rowsort x\nSELECT b DIV 2 FROM a\n----\n\n" +
		"# a note\nskipif mysql\nquery I rowsort x\nSELECT b / 2\n  FROM a\n----\n1\n\nskipif postgresql\nstatement ok\nREPLACE\n"
	if got, want := logicStatements(text), "CREATE TABLE a (b int);\nSELECT b / 2\n  FROM a;\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
