package integration

import (
	"fmt"
	"testing"
)

const ownersSchema = `CREATE ROLE clerk; CREATE ROLE "Ünal" IN ROLE clerk; CREATE TABLE owned (id int PRIMARY KEY, t text, v varchar(20), f char(10), c text COLLATE "C", i text COLLATE "en-x-icu", n int NOT NULL);
INSERT INTO owned SELECT i, o, o, o, o, o, i % 7 FROM (SELECT i, (ARRAY['postgres', 'clerk', 'Ünal', 'POSTGRES', 'clerk ', '', NULL])[i % 7 + 1] AS o FROM generate_series(1, 3000) i) x;
GRANT SELECT ON owned TO clerk`

// TestSessionNames compares text with the session's names, which the server knows at each execution.
func TestSessionNames(t *testing.T) {
	s := privateStack(t, ownersSchema)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	same := func(sql string, format []int16) answer {
		t.Helper()
		want, got := ask(t, direct, sql, format), ask(t, proxy, sql, format)
		if got.String() != want.String() {
			t.Errorf("%s: %s", sql, firstDifference([]byte(got.String()), []byte(want.String())))
		}
		return want
	}
	for _, role := range []string{"RESET ROLE", "SET ROLE clerk", `SET ROLE "Ünal"`} {
		must(t, direct, role)
		must(t, proxy, role)
		for _, column := range []string{"t", "v", "f", "c", "lower(t)", "coalesce(v, t)", "t || v"} {
			for i, name := range []string{"current_user", "session_user", "user", "current_role", "current_catalog"} {
				for k, where := range []string{"%s = %s", "%[2]s = %[1]s", "%s <> %s", "NOT %[2]s <> %[1]s OR n = 3"} {
					s.accelerates(t, 1, func() {
						same(fmt.Sprintf("SELECT count(*), sum(n), min(id) FROM owned WHERE "+where, column, name), protocols[(i+k)%len(protocols)].format)
					})
				}
			}
		}
	}
	// Of a collation that is not name's PostgreSQL says so; names have other operators for an order.
	s.forwardsAll(t, func() {
		if a := same("SELECT count(*) FROM owned WHERE i = current_user", nil); a.err == "" {
			t.Error("the server compares a name with text of another collation")
		}
		same("SELECT count(*) FROM owned WHERE t < current_user", nil)
		same("SELECT current_user, count(*) FROM owned", nil)
	})
}
