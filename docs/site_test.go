package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// rootPages are the pages of the root that the site has, too (scripts/site.sh).
var rootPages = []string{"ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"}

var (
	fenced   = regexp.MustCompile("(?ms)^[ 0-9.]*```.*?^ *```$")
	code     = regexp.MustCompile("`[^`\n]*`")
	linkTo   = regexp.MustCompile(`!?\[[^\]]*\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ +(.*?) *$`)
	linkText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	noWord   = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	spaces   = regexp.MustCompile(`[ -]+`)
)

// prose is a page without its code.
func prose(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return fenced.ReplaceAllString(string(text), "")
}

// anchors are those of a page's headings that GitHub and mkdocs make alike: names that are there but once, and in which no
// spaces or dashes follow each other.
func anchors(text string) (list []string) {
	count := map[string]int{}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		title := noWord.ReplaceAllString(strings.ToLower(strings.ReplaceAll(linkText.ReplaceAllString(m[1], "$1"), "`", "")), "")
		if github := strings.ReplaceAll(title, " ", "-"); github == spaces.ReplaceAllString(strings.TrimSpace(title), "-") {
			list = append(list, github)
		}
		count[spaces.ReplaceAllString(title, "-")]++
	}
	return slices.DeleteFunc(list, func(a string) bool { return count[a] > 1 })
}

func TestAnchors(t *testing.T) {
	got := anchors("# A `b`-c\n## pg_hba.conf\n## pgaccel.queries\n## Twice\n## Twice\n## a - b\n## [A link](x.md), too\n")
	if want := []string{"a-b-c", "pg_hbaconf", "pgaccelqueries", "a-link-too"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestLinks: each relative link leads to a file, and to a heading of it, in the sources and in the site alike.
func TestLinks(t *testing.T) {
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range rootPages {
		pages = append(pages, filepath.Join("..", name))
	}
	links := 0
	for _, page := range append(pages, "../README.md") {
		text := prose(t, page)
		for _, m := range linkTo.FindAllStringSubmatch(code.ReplaceAllString(text, "`x`"), -1) {
			target := m[1]
			if strings.HasPrefix(target, "https://") || strings.HasPrefix(target, "http://") {
				continue
			}
			links++
			file, anchor, has := strings.Cut(target, "#")
			path := page
			if file != "" {
				path = strings.TrimPrefix(filepath.Join(filepath.Dir(page), file), "../docs/")
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: %s leads nowhere", page, target)
				continue
			}
			if page != "../README.md" && !inSite(path, pages) {
				t.Errorf("%s: %s is no page of the site", page, target)
			}
			if has && !slices.Contains(anchors(prose(t, path)), anchor) {
				t.Errorf("%s: %s: there is no such heading, or GitHub and mkdocs name it otherwise", page, target)
			}
		}
	}
	if links < 100 {
		t.Errorf("%d links: what is taken for one has changed", links)
	}
}

// inSite reports whether the site has a file: a page, or a picture in docs.
func inSite(path string, pages []string) bool {
	return slices.Contains(pages, path) || filepath.Dir(path) == "." && slices.Contains([]string{".svg", ".png"}, filepath.Ext(path))
}

// TestNavigation: each page is in the site's navigation, once, and nothing else is.
func TestNavigation(t *testing.T) {
	text, err := os.ReadFile("../mkdocs.yml")
	if err != nil {
		t.Fatal(err)
	}
	var config struct{ Nav yaml.Node }
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	var named []string
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode && strings.HasSuffix(n.Value, ".md") {
			named = append(named, n.Value)
		}
		for _, c := range n.Content {
			walk(c)
		}
	}
	walk(&config.Nav)
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages = append(pages, rootPages...)
	slices.Sort(pages)
	slices.Sort(named)
	if !slices.Equal(named, pages) {
		t.Errorf("the navigation of mkdocs.yml has\n%q\nwant\n%q", named, pages)
	}
	script, err := os.ReadFile("../scripts/site.sh")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(script), "cp docs/*.md "+strings.Join(rootPages, " ")+" ") {
		t.Errorf("scripts/site.sh gathers other pages than %q", rootPages)
	}
}

// TestAlertsPage: operations.md says of each alert what to do.
func TestAlertsPage(t *testing.T) {
	rules, err := os.ReadFile("../deploy/prometheus/pgaccel.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	page := prose(t, "operations.md")
	alerts := regexp.MustCompile(`(?m)^ *- alert: (\w+)$`).FindAllStringSubmatch(string(rules), -1)
	for _, m := range alerts {
		if !strings.Contains(page, "| "+m[1]+" | ") {
			t.Errorf("operations.md does not say what to do about %s", m[1])
		}
	}
	if len(alerts) < 5 {
		t.Errorf("%d alerts", len(alerts))
	}
}

// logged is a warning or an error of the log. Strings of tests are not read.
var logged = regexp.MustCompile(`\.(?:Warn|Error)\("([^"]+)"`)

// TestMessagesPage: the messages that troubleshooting.md explains are those of the program, and it has each warning and
// each error of the log.
func TestMessagesPage(t *testing.T) {
	page, err := os.ReadFile("troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	_, tables, ok := strings.Cut(string(page), "\n## What clients see\n")
	if !ok {
		t.Fatal("troubleshooting.md has no messages")
	}
	var explained []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*?) \\| ").FindAllStringSubmatch(tables, -1) {
		for _, m := range code.FindAllString(row[1], -1) {
			explained = append(explained, strings.Trim(m, "`"))
		}
	}
	var sources strings.Builder
	for _, dir := range []string{"cmd/pgaccel", "colstore", "engine", "gpu", "internal/console", "internal/server", "internal/trace", "proxy", "replica"} {
		files, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no files: %v", dir, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			sources.Write(text)
		}
	}
	for _, m := range explained {
		if !strings.Contains(sources.String(), m) {
			t.Errorf("troubleshooting.md explains %s, which nothing says", m)
		}
	}
	all := logged.FindAllStringSubmatch(sources.String(), -1)
	for _, m := range all {
		if !slices.ContainsFunc(explained, func(e string) bool { return strings.HasPrefix(m[1], e) }) {
			t.Errorf("troubleshooting.md does not say what to do about %s", m[1])
		}
	}
	if len(all) < 40 {
		t.Errorf("%d messages of the log: they are written otherwise now", len(all))
	}
}
