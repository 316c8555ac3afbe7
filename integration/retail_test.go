package integration

import (
	"os"
	"strings"
	"testing"
)

// TestRetail runs statements of the shapes of TPC-DS, over tables of our own: all are answered here, in
// each protocol, with the server's rows.
func TestRetail(t *testing.T) {
	schema, err := os.ReadFile("testdata/retail/schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/retail/statements.sql")
	if err != nil {
		t.Fatal(err)
	}
	s := privateStack(t, string(schema))
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	if _, err := proxy.Exec(t.Context(), "SET pgaccel.mode = 'force'").ReadAll(); err != nil {
		t.Fatal(err)
	}
	for _, sql := range strings.Split(string(text), ";\n") {
		if sql = strings.TrimSpace(sql); sql == "" {
			continue
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(sql, "-- "), "\n")
		t.Run(name, func(t *testing.T) {
			for _, p := range protocols {
				want := ask(t, direct, sql, p.format)
				if want.err != "" || len(want.rows) == 0 {
					t.Fatalf("the server itself: %d rows, %s", len(want.rows), want.err)
				}
				s.accelerates(t, 1, func() {
					if got := ask(t, proxy, sql, p.format); got.String() != want.String() {
						t.Errorf("%s: %s", p.name, firstDifference([]byte(got.String()), []byte(want.String())))
					}
				})
			}
		})
	}
	if t.Failed() {
		t.Log(reasons(t, s))
	}
}
