package integration

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// boardTarget is what a panel of a board asks for.
type boardTarget struct {
	Expr       string // PromQL, or
	RawSQL     string `yaml:"rawSql"`
	Datasource struct{ Type, UID string }
}

type panel struct {
	ID         int
	Type       string
	Title      string
	Datasource struct{ Type, UID string }
	Grid       struct{ X, Y, W, H int } `yaml:"gridPos"`
	Targets    []boardTarget
	Panels     []panel // of a row
}

// board is one of Grafana's.
type board struct {
	file       string
	ID         any
	UID, Title string
	Schema     int `yaml:"schemaVersion"`
	Templating struct {
		List []struct{ Name, Type, Query any }
	}
	Panels []panel
}

const boardFolder = "../deploy/grafana/boards"

func boards(t *testing.T) (list []board) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(boardFolder, "*.json"))
	if err != nil || len(files) != 4 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		b := board{file: filepath.Base(file)}
		readYAML(t, file, &b) // JSON is YAML
		list = append(list, b)
	}
	return list
}

// all are the panels, those in rows included.
func (b *board) all() (list []panel) {
	for _, p := range b.Panels {
		list = append(append(list, p), p.Panels...)
	}
	return list
}

func (b *board) targets() (list []boardTarget) {
	for _, p := range b.all() {
		list = append(list, p.Targets...)
	}
	return list
}

// TestBoards: a board can be loaded anywhere, since it has an identifier of its own and names no data source; panels do not lie upon
// each other. What is asked by SQL has an answer.
func TestBoards(t *testing.T) {
	conn := connect(t, sharedStack(t).proxy.url("postgres"))
	uids, asked := map[string]bool{}, 0
	for _, b := range boards(t) {
		if b.ID != nil || b.Schema != 39 || b.Title == "" || uids[b.UID] || b.UID != "pgaccel" && !strings.HasPrefix(b.UID, "pgaccel-") {
			t.Errorf("%s: id %v, uid %q, schema %d", b.file, b.ID, b.UID, b.Schema)
		}
		uids[b.UID] = true
		sources := map[string]any{} // the variables' types, by how they are used
		for _, v := range b.Templating.List {
			if v.Type == "datasource" {
				sources["${"+v.Name.(string)+"}"] = v.Query
			}
		}
		ids := map[int]bool{}
		for _, p := range b.all() {
			if p.ID == 0 || ids[p.ID] || p.Title == "" {
				t.Errorf("%s: panel %d %q: its number is another's, or it has none", b.file, p.ID, p.Title)
			}
			if ids[p.ID] = true; p.Type != "row" && (len(p.Targets) == 0 || sources[p.Datasource.UID] != p.Datasource.Type) {
				t.Errorf("%s: %s reads %+v", b.file, p.Title, p.Datasource)
			}
			for _, target := range p.Targets {
				if target.Datasource != p.Datasource || (target.Expr == "") == (target.RawSQL == "") {
					t.Errorf("%s: %s asks %+v", b.file, p.Title, target)
				}
				if target.RawSQL != "" {
					asked++
					if a := ask(t, conn, target.RawSQL, nil); a.err != "" {
						t.Errorf("%s: %s: %s", b.file, p.Title, a.err)
					}
				}
			}
		}
		for i, p := range b.Panels {
			if p.Grid.X < 0 || p.Grid.X+p.Grid.W > 24 || p.Grid.W < 1 || p.Grid.H < 1 {
				t.Errorf("%s: %s is at %+v", b.file, p.Title, p.Grid)
			}
			for _, o := range b.Panels[:i] {
				if p.Grid.X < o.Grid.X+o.Grid.W && o.Grid.X < p.Grid.X+p.Grid.W && p.Grid.Y < o.Grid.Y+o.Grid.H && o.Grid.Y < p.Grid.Y+p.Grid.H {
					t.Errorf("%s: %s and %s are at one place", b.file, p.Title, o.Title)
				}
			}
		}
	}
	if asked == 0 {
		t.Error("nothing is asked by SQL")
	}
}

// TestCompose: Prometheus takes its configuration in docker-compose.yml; Grafana finds there the boards and both kinds of data sources
// that they read, by the names of the services and their ports. docker-compose.demo.yml brings the tables of the quick start.
func TestCompose(t *testing.T) {
	run(t, nil, nil, prometheusProgram(t, "promtool"), "check", "config", "../deploy/prometheus/prometheus.yml")
	var compose struct {
		Services map[string]struct{ Volumes, Ports []string }
	}
	readYAML(t, "../docker-compose.yml", &compose)
	mounted := map[string]string{} // in the container of a service -> here
	for name, s := range compose.Services {
		for _, v := range s.Volumes {
			parts := strings.Split(v, ":")
			if strings.HasPrefix(v, "./") {
				if _, err := os.Stat(filepath.Join("..", parts[0])); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				mounted[name+":"+parts[1]] = filepath.Join("..", parts[0])
			}
		}
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s can be reached from elsewhere: %s", name, p)
			}
		}
	}
	var demo struct {
		Services struct{ Postgres struct{ Volumes []string } }
	}
	readYAML(t, "../docker-compose.demo.yml", &demo)
	sql, err := os.ReadFile("../deploy/demo.sql")
	if err != nil || !slices.Equal(demo.Services.Postgres.Volumes, []string{"./deploy/demo.sql:/docker-entrypoint-initdb.d/demo.sql:ro"}) {
		t.Errorf("the demo's tables: %v, %v", demo, err)
	}
	quickStart := ""
	for _, b := range docBlocks(t, "quickstart.md") {
		if b.word == "owner" {
			quickStart += b.text
		}
	}
	if _, made, _ := strings.Cut(string(sql), "\n"); made != quickStart {
		t.Errorf("deploy/demo.sql makes the tables by\n%s\nthe quick start by\n%s", made, quickStart)
	}
	if mounted["prometheus:/etc/prometheus/pgaccel.rules.yml"] != rulesFile || mounted["prometheus:/etc/prometheus/prometheus.yml"] == "" {
		t.Errorf("Prometheus has %v", mounted)
	}
	provisioning := mounted["grafana:/etc/grafana/provisioning"]
	var dashboards struct {
		Providers []struct{ Options struct{ Path string } }
	}
	readYAML(t, filepath.Join(provisioning, "dashboards/pgaccel.yml"), &dashboards)
	if len(dashboards.Providers) != 1 || mounted["grafana:"+dashboards.Providers[0].Options.Path] != boardFolder {
		t.Errorf("boards are looked for in %+v", dashboards)
	}
	var sources struct {
		Datasources []struct{ Type, URL string }
	}
	readYAML(t, filepath.Join(provisioning, "datasources/pgaccel.yml"), &sources)
	wanted := map[string]string{}
	for _, b := range boards(t) {
		for _, target := range b.targets() {
			wanted[target.Datasource.Type] = b.file
		}
	}
	for _, s := range sources.Datasources {
		delete(wanted, s.Type)
		host, port, ok := strings.Cut(strings.TrimPrefix(s.URL, "http://"), ":")
		if service, there := compose.Services[host]; !ok || !there || !slices.ContainsFunc(service.Ports, func(p string) bool { return strings.HasSuffix(p, ":"+port) }) {
			t.Errorf("%s: no such service", s.URL)
		}
	}
	if len(wanted) > 0 || len(sources.Datasources) != 2 {
		t.Errorf("%d data sources; none for %v", len(sources.Datasources), wanted)
	}
}
