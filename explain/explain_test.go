package explain

import (
	"encoding/json"
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"pgaccel/catalog"
	"pgaccel/pushdown"
	"pgaccel/syntax"
	"pgaccel/vector"
)

var update = flag.Bool("update", false, "write testdata anew")

func testCatalog() *catalog.Catalog {
	text := vector.Type{Kind: vector.Text, Collation: vector.Collation{OID: 950, C: true, Deterministic: true}}
	column := func(name string, number int16, t vector.Type) catalog.Column {
		return catalog.Column{Name: name, AttNum: number, Type: t, NotNull: number == 1}
	}
	return &catalog.Catalog{Tables: []*catalog.Table{
		{OID: 1, Schema: "public", Name: "part", Rows: 200, Columns: []catalog.Column{column("id", 1, vector.TypeOf(vector.Int4)), column("brand", 2, text), column("size", 3, vector.TypeOf(vector.Int4))},
			Indexes: []catalog.Index{{Name: "part_pkey", Columns: []int{0}, Unique: true}}},
		{OID: 2, Schema: "public", Name: "Sale", Rows: 600000, Columns: []catalog.Column{column("id", 1, vector.TypeOf(vector.Int4)), column("part_id", 2, vector.TypeOf(vector.Int4)), column("day", 3, vector.TypeOf(vector.Date)),
			column("price", 4, vector.NumericType(2)), column("note", 5, text)}, Indexes: []catalog.Index{{Name: "sale_pkey", Columns: []int{0}, Unique: true}}}}}
}

// statements are those of the golden file.
var statements = []struct {
	sql     string
	options Options
}{
	{`SELECT count(*) FROM "Sale"`, Options{Costs: true}},
	{`SELECT brand, sum(price) FILTER (WHERE note IS NOT NULL), count(DISTINCT note) FROM "Sale" s JOIN part p ON p.id = part_id WHERE day >= '2024-05-01' AND (size < 10 OR size IN (20, -30)) AND size <> extract(year FROM day)
 GROUP BY brand HAVING count(*) > 2 ORDER BY 2 DESC NULLS LAST, 1 LIMIT 3 OFFSET 1`, Options{Costs: true, Verbose: true, Timing: true, Summary: true}},
	{`SELECT id, upper(note), CASE WHEN price > 5 THEN 'it''s' ELSE coalesce(note, E'\\') END FROM "Sale" WHERE note LIKE 'a%' AND NOT (id = 7) ORDER BY id`, Options{Verbose: true}},
	{`WITH x AS (SELECT part_id, sum(price) AS total FROM "Sale" GROUP BY 1) SELECT a.part_id, row_number() OVER (PARTITION BY b.total ORDER BY a.total DESC) FROM x a JOIN x b USING (part_id)
 WHERE a.total > (SELECT avg(total) FROM x) UNION ALL SELECT id, size FROM part`, Options{Costs: true}},
	{`SELECT day, note, sum(price) FROM "Sale" GROUP BY ROLLUP (day, note)`, Options{}},
	{`SELECT brand FROM part p WHERE EXISTS (SELECT 1 FROM "Sale" s WHERE s.part_id = p.id AND s.price > 1.5)`, Options{}},
	{`SELECT p.brand, q.brand FROM part p LEFT JOIN part q ON q.id = p.size WHERE q.brand IS NULL`, Options{}},
	{`SELECT DISTINCT ON (brand) brand, size FROM part ORDER BY brand, size DESC`, Options{}},
}

// TestGolden: what is shown of plans.
func TestGolden(t *testing.T) {
	var b strings.Builder
	for _, x := range statements {
		p := pushdown.Plan(syntax.Parse(x.sql), nil, testCatalog())
		if len(p.Refused) > 0 {
			t.Fatal(x.sql, p.Refused[0].Forward)
		}
		st := &Statement{Plan: Plan(p.Star, x.options), Planning: time.Millisecond}
		if x.options.Timing {
			st.Execution = &Actual{Rows: 3, Took: 1234 * time.Microsecond, Device: "cuda:0", Scanned: 600200, Bytes: 4096, Segments: 11, Skipped: 2,
				Compile: 812 * time.Millisecond, Copy: 70 * time.Millisecond, Compute: 300 * time.Microsecond, Copied: 1 << 20}
		} else if x.options.Costs {
			st.Execution = &Actual{Rows: 1, Took: time.Second, Device: "cpu", Compile: time.Second}
		}
		fmt.Fprintf(&b, "%s\n----\n", x.sql)
		for _, format := range []string{"text", "json", "yaml", "xml"} {
			x.options.Format = format
			for _, row := range st.Rows(x.options) {
				if wellFormed(t, format, row); format == "text" || x.options.Timing {
					b.WriteString(row + "\n")
				}
			}
		}
		b.WriteByte('\n')
	}
	const file = "testdata/plans.txt"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("another output than %s (go test ./explain -update):\n%s", file, b.String())
	}
}

// wellFormed fails the test where a structured format cannot be read.
func wellFormed(t *testing.T, format, text string) {
	t.Helper()
	switch format {
	case "json":
		if !json.Valid([]byte(text)) {
			t.Errorf("not JSON:\n%s", text)
		}
	case "xml":
		for d := xml.NewDecoder(strings.NewReader(text)); ; {
			if _, err := d.Token(); err == io.EOF {
				return
			} else if err != nil {
				t.Fatalf("%v:\n%s", err, text)
			}
		}
	}
}

// TestStrings: strings that formats have to escape.
func TestStrings(t *testing.T) {
	s := "a\"b\\c\x01\n\t\r<&>é"
	g := group{{Key: "A B", Value: s}, {Key: "L", Value: []string{s, ""}}}
	var got []map[string]any
	if err := json.Unmarshal([]byte(g.json()), &got); err != nil || got[0]["A B"] != s || got[0]["L"].([]any)[0] != s {
		t.Error(err, got)
	}
	wellFormed(t, "xml", g.xml())
	if y := g.yaml(); y != "- A B: "+escapeJSON(s)+"\n  L: \n    - "+escapeJSON(s)+"\n    - \"\"" {
		t.Error(y)
	}
}
