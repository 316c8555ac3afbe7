package pgload

import "testing"

func TestKeysOf(t *testing.T) {
	const statements = "ALTER TABLE a ADD PRIMARY KEY (x);\nALTER TABLE ab ADD PRIMARY KEY (a);\nCREATE INDEX ON ab (y, a);\n"
	for table, want := range map[string]string{
		"a": "ALTER TABLE a ADD PRIMARY KEY (x)", "ab": "ALTER TABLE ab ADD PRIMARY KEY (a); CREATE INDEX ON ab (y, a)", "b": "",
	} {
		if got := KeysOf(statements, table); got != want {
			t.Errorf("%s: %q, want %q", table, got, want)
		}
	}
}
