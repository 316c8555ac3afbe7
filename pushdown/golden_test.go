package pushdown

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgaccel/plan"
	"pgaccel/syntax"
)

var update = flag.Bool("update", false, "rewrite testdata/*.txt with what Plan makes of its statements")

// TestGolden plans the statements of testdata/*.txt. A file is a list of blocks
//
//	SQL
//	----
//	the plan, or why it is forwarded
//
// separated by blank lines; lines that start with # are comments.
func TestGolden(t *testing.T) {
	golden(t, "testdata/*.txt", func(_ string, st Statement) string { return formatStatement(st) })
}

// TestFinish writes the cores and the rests of the statements of testdata/finish/*.txt, which are all refused.
func TestFinish(t *testing.T) {
	cat := testCatalog(t)
	golden(t, "testdata/finish/*.txt", func(sql string, st Statement) string {
		if st.Forward == nil {
			t.Errorf("%s\nis planned", sql)
		}
		core, finish := PlanFinish(syntax.Parse(sql), nil, cat)
		if finish == nil {
			return "none: " + st.Forward.Error()
		}
		checkPlan(t, core)
		return "core " + finish.Core + "\nrest " + finish.SQL
	})
}

// TestTrees writes the trees of the statements of testdata/trees/*.txt.
func TestTrees(t *testing.T) {
	golden(t, "testdata/trees/*.txt", func(_ string, st Statement) string {
		text := ""
		if st.Tree != nil {
			text = plan.Format(st.Tree, st.Deps.Tables)
		}
		if st.Forward != nil {
			text += st.Forward.Error()
		}
		return text
	})
}

// golden compares what the statements of files give with what the files say.
func golden(t *testing.T, pattern string, format func(sql string, st Statement) string) {
	cat := testCatalog(t)
	files, _ := filepath.Glob(pattern)
	if len(files) == 0 {
		t.Fatal("no testdata")
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			text := readText(t, name)
			var out []string
			for _, block := range strings.Split(strings.TrimSpace(text), "\n\n") {
				if strings.HasPrefix(block, "#") {
					out = append(out, block)
					continue
				}
				sql, want, _ := strings.Cut(block, "\n----")
				want = strings.TrimSpace(want)
				st := Plan(syntax.Parse(sql), nil, cat)
				checkPlan(t, st)
				got := strings.TrimSpace(format(sql, st))
				if got != want && !*update {
					t.Errorf("%s\n got:\n%s\nwant:\n%s", sql, got, want)
				}
				out = append(out, sql+"\n----\n"+got)
			}
			if *update {
				if err := os.WriteFile(name, []byte(strings.Join(out, "\n\n")+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
