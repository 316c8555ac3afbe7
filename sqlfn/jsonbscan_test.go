package sqlfn

import (
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// TestJSONField compares the scanner of documents with encoding/json, which finds the same text.
func TestJSONField(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 20_000 {
		d, ok := sqltype.Of(vector.JSONB).Parse(randomObject(r, 0))
		if !ok {
			t.Fatal("no document")
		}
		s := d.Str
		var all map[string]json.RawMessage
		if err := json.Unmarshal([]byte(s), &all); err != nil {
			t.Fatal(s, err)
		}
		keys := []string{"", "a", ", ", ": ", "absent", randomText(r), randomText(r)}
		for k := range all {
			keys = append(keys, k)
		}
		for _, k := range keys {
			want, has := all[k]
			if v, ok := jsonField(s, k); ok != has || v != string(want) {
				t.Fatalf("%s -> %q: %s, %v, want %s", s, k, v, ok, want)
			}
			if has && !jsonContains(s, "{"+quoted(k)+": "+string(want)+"}") {
				t.Fatalf("%s does not contain its %q", s, k)
			}
		}
		if end := jsonEnd(s+", ", 0); end != len(s) || !jsonContains(s, s) {
			t.Fatalf("%s ends at %d, or does not contain itself", s, end)
		}
	}
}

// randomText has quotes, escapes and brackets at every distance from the words that strings are read by.
func randomText(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(20) {
		b.WriteString([]string{"a", "b", "é", `"`, `\`, "\n", "\x01", "}", "]", "{", "[", ",", ":", " ", `": `, `, "`}[min(r.IntN(20), 15)])
	}
	return b.String()
}

func quoted(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(err)
	}
	d, _ := sqltype.Of(vector.JSONB).Parse(b.String())
	return d.Str
}

func randomObject(r *rand.Rand, depth int) string {
	var parts []string
	for range r.IntN(6) {
		parts = append(parts, quoted(randomText(r))+":"+randomJSON(r, depth+1))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func randomJSON(r *rand.Rand, depth int) string {
	switch n := r.IntN(8); {
	case n == 0 && depth < 4:
		return randomObject(r, depth)
	case n == 1 && depth < 4:
		var parts []string
		for range r.IntN(4) {
			parts = append(parts, randomJSON(r, depth+1))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case n < 5:
		return quoted(randomText(r))
	case n == 5:
		return "null"
	}
	return strconv.Itoa(r.IntN(2000)-1000) + ".50"
}
