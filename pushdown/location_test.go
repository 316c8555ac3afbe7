package pushdown

import (
	"strings"
	"testing"
)

// TestRefusalsHaveAPlace: the place at which a refusal is said to begin, marked by ^ in
// the statement. A statement without a mark has none that is known.
func TestRefusalsHaveAPlace(t *testing.T) {
	cat := testCatalog(t)
	for _, marked := range []string{
		"SELECT id, ^row_number() OVER () FROM orders",
		"SELECT 'ä' AS a, id + abs(^random()) FROM orders",
		"SELECT id FROM orders WHERE id > 5 AND ^EXISTS (SELECT 1 FROM orders)",
		"SELECT id FROM orders WHERE id > 5 AND id = ^(SELECT max(id) FROM orders)",
		"SELECT ^(SELECT count(*) FROM orders)",
		"SELECT count(*) FROM orders, ^views",
		"SELECT count(*) FROM orders x JOIN ^orders y ON x.id > y.id",
		"SELECT count(*) FROM orders ^NATURAL JOIN orders",
		"SELECT id FROM orders ^UNION ALL SELECT id FROM orders",
		"^WITH x AS (SELECT id FROM orders) SELECT id FROM x",
		"SELECT id FROM orders FOR ^UPDATE",
		"SELECT ^DISTINCT ON (id) id FROM orders",
		"SELECT id FROM orders LIMIT ^-1",
		"SELECT id FROM orders ORDER BY ^99",
		"SELECT sum(id) FROM orders, ^generate_series(1, 3)",
		"SELECT id FROM orders WHERE ROW(id, 1) ^= ROW(1, 1)",
		"SELECT 5",
		"DELETE FROM orders",
	} {
		sql := strings.Replace(marked, "^", "", 1)
		st := Plan(sql, nil, cat)
		if st.Forward == nil {
			t.Errorf("%s is planned", sql)
			continue
		}
		if want := strings.Index(marked, "^"); st.At != want {
			t.Errorf("%s (%s): at %d, want %d", marked, st.Forward.Detail, st.At, want)
		}
	}
	if st := Plan("SELECT count(*) FROM orders", nil, cat); st.Forward != nil || st.At != -1 {
		t.Errorf("planned: %+v", st)
	}
}

// TestNormalizedPosition: the place in a text whose constants are $n, in characters.
func TestNormalizedPosition(t *testing.T) {
	for marked, want := range map[string]string{
		"SELECT 'ä/**/ö', 10000, ^rank() OVER () FROM t WHERE x = 'long enough'": "SELECT $1, $2, ^rank() OVER () FROM t WHERE x = $3",
		"SELECT 'é' AS ä, a /^b, /**/ 5 FROM t":                                  "SELECT $1 AS ä, a /^b, /**/ $2 FROM t",
		"SELECT 1, 'x' > ^-5.25 FROM t":                                          "SELECT $1, $2 > ^$3 FROM t",
		"^SELECT 1":                                                              "^SELECT $1",
	} {
		text, position, err := Normalize(strings.Replace(marked, "^", "", 1), strings.Index(marked, "^"))
		if err != nil {
			t.Fatal(err)
		}
		got := []rune(text)
		if shown := string(got[:position-1]) + "^" + string(got[position-1:]); shown != want {
			t.Errorf("%s: %s, want %s", marked, shown, want)
		}
	}
	if text, position, err := Normalize("SELECT 1", -1); text != "SELECT $1" || position != 0 || err != nil {
		t.Errorf("%s %d %v", text, position, err)
	}
}
