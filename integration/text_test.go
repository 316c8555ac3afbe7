package integration

import "testing"

// computedText are queries over text that is computed row by row: all are accelerated.
var computedText = []string{
	"SELECT id, d::text AS dt, tm::text AS tmt, ts::text AS tst, tz::text AS tzt, num::text AS n, i8::text, b::text, k::varchar FROM typed WHERE id BETWEEN 690 AND 720 ORDER BY id",
	"SELECT CASE WHEN b THEN t ELSE i8::text END COLLATE \"C\" AS x, count(*), count(DISTINCT coalesce(v, num::text)) FROM typed GROUP BY x ORDER BY x DESC NULLS FIRST",
	"SELECT k, min(coalesce(v, d::text) COLLATE \"C\"), max(CASE WHEN id % 2 = 0 THEN ts::text ELSE t END COLLATE \"C\") FROM typed GROUP BY ROLLUP (k) ORDER BY GROUPING(k), k",
	"SELECT DISTINCT coalesce(v, t, id::text) COLLATE \"C\" AS x FROM typed WHERE (CASE WHEN b THEN v ELSE t END) IN ('v1', 'text 7', 'v3') ORDER BY x",
	"SELECT count(*) FROM typed WHERE CASE WHEN k > 3 THEN num::text ELSE tm::text END LIKE '%3.2%'",
	"SELECT id, length(CASE WHEN b THEN t ELSE d::text END) FROM typed WHERE coalesce(i8, id)::text = coalesce(i8::text, id::text) AND id < 200 ORDER BY id",
	"SELECT count(*), max(b.id) FROM typed a JOIN changing b ON a.id = b.id WHERE CASE WHEN b.g > 4 THEN a.t ELSE b.v::text END COLLATE \"C\" > 'text 3'",
	"SELECT CASE WHEN b THEN c ELSE 'x'::char(6) END AS x, count(*), max(octet_length(CASE WHEN b THEN c ELSE 'x'::char(6) END)), min(id) AS least FROM typed GROUP BY x ORDER BY least",
	"SELECT percentile_disc(0.4) WITHIN GROUP (ORDER BY coalesce(v, i8::text) COLLATE \"C\") FROM typed",
	"SELECT coalesce(t, id::text) COLLATE \"C\" AS x, id FROM typed ORDER BY x DESC, id LIMIT 30 OFFSET 5",
}

// TestComputedText asks for text that is computed row by row.
func TestComputedText(t *testing.T) {
	s := sharedStack(t)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	for _, c := range []string{"SET TimeZone = 'UTC'", "SET DateStyle = 'ISO, DMY'"} {
		must(t, direct, c)
		must(t, proxy, c)
	}
	for _, q := range computedText {
		for _, p := range protocols {
			s.accelerates(t, 1, func() {
				want, got := ask(t, direct, q, p.format), ask(t, proxy, q, p.format)
				if want.err != "" || len(want.rows) == 0 {
					t.Errorf("%s: the server itself: %d rows, %s", q, len(want.rows), want.err)
				}
				if got.String() != want.String() {
					t.Errorf("%s: %s", q, firstDifference([]byte(got.String()), []byte(want.String())))
				}
			})
		}
	}
	// The text of dates and times is that of the session's settings.
	for c, here := range map[string]bool{"SET DateStyle = 'German'": false, "SET DateStyle = 'SQL, DMY'": false, "SET DateStyle = 'ISO'; SET TimeZone = 'Asia/Tokyo'": true} {
		must(t, direct, c)
		must(t, proxy, c)
		check := func() {
			want, got := ask(t, direct, computedText[0], nil), ask(t, proxy, computedText[0], nil)
			if got.String() != want.String() {
				t.Errorf("%s: %s", c, firstDifference([]byte(got.String()), []byte(want.String())))
			}
		}
		if here {
			s.accelerates(t, 1, check)
		} else {
			s.forwardsAll(t, check)
		}
	}
}
