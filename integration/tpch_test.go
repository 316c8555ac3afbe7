package integration

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"pgaccel/internal/tpch"
)

// tpchForwarded are the queries of TPC-H that are not answered here yet, and what is said of them.
var tpchForwarded = map[string]string{}

// tpchScale is the least scale factor, in steps of 0.01, at which each query has rows.
const tpchScale = 0.02

// TestTPCH runs the 22 queries of TPC-H as they are published: rows and descriptions are the
// server's, and those that are to be are answered here.
func TestTPCH(t *testing.T) {
	s, direct, proxy := generatedStack(t, tpch.Source, tpchScale, nil)
	for _, q := range tpch.Queries() {
		t.Run(q.Name, func(t *testing.T) {
			sql := q.Published()
			for _, p := range protocols {
				want := ask(t, direct, sql, p.format)
				if want.err != "" || len(want.rows) == 0 {
					t.Fatalf("the server itself: %d rows, %s", len(want.rows), want.err)
				}
				compare := func() {
					if got := ask(t, proxy, sql, p.format); got.String() != want.String() {
						t.Errorf("%s: %s", p.name, firstDifference([]byte(got.String()), []byte(want.String())))
					}
				}
				if tpchForwarded[q.Name] != "" {
					s.forwardsAll(t, compare)
				} else {
					s.accelerates(t, 1, compare)
				}
			}
		})
	}
	t.Log(reasons(t, s))
}

// reasons says what pgaccel.queries has of statements that were forwarded.
func reasons(t *testing.T, s *stack) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.proxy.url("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	rows, err := conn.Query(t.Context(), "SELECT left(query, 60), coalesce(reason, ''), coalesce(detail, '') FROM pgaccel.queries WHERE forwarded > 0")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for rows.Next() {
		var a, b, c string
		if err := rows.Scan(&a, &b, &c); err != nil {
			t.Fatal(err)
		}
		out.WriteString(strings.Join([]string{strings.ReplaceAll(a, "\n", " "), b, c}, " | ") + "\n")
	}
	return out.String()
}
