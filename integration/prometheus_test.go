package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"pgaccel/internal/subprocess"
)

const rulesFile = "../deploy/prometheus/pgaccel.rules.yml"

// prometheusProgram is prometheus or promtool: the machine's, or that of Debian's package in build.
func prometheusProgram(t *testing.T, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	path, err := filepath.Abs(filepath.Join("../build/prometheus/usr/bin", name))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("no %s: scripts/install-deps.sh test unpacks it (%v)", name, err)
	}
	return path
}

func readYAML(t *testing.T, path string, to any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(text, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestAlertsFire: the rules are valid, and the unit tests beside them pass, in which each alert fires and does not.
func TestAlertsFire(t *testing.T) {
	promtool, tests := prometheusProgram(t, "promtool"), strings.Replace(rulesFile, ".yml", ".test.yml", 1)
	run(t, nil, nil, promtool, "check", "rules", rulesFile)
	run(t, nil, nil, promtool, "test", "rules", tests)
	var rules struct {
		Groups []struct{ Rules []struct{ Alert string } }
	}
	readYAML(t, rulesFile, &rules)
	var units struct {
		Tests []struct {
			Cases []struct {
				Alert string `yaml:"alertname"`
				Fires []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	readYAML(t, tests, &units)
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, unit := range units.Tests {
		for _, c := range unit.Cases {
			fires[c.Alert] = fires[c.Alert] || len(c.Fires) > 0
			silent[c.Alert] = silent[c.Alert] || len(c.Fires) == 0
		}
	}
	alerts := 0
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			alerts++
			if !fires[rule.Alert] || !silent[rule.Alert] {
				t.Errorf("%s: a test has it fire: %v, and not fire: %v", rule.Alert, fires[rule.Alert], silent[rule.Alert])
			}
		}
	}
	if alerts == 0 {
		t.Error("no alerts")
	}
}

// prometheus is one that scrapes a pgaccel.
type prometheus struct{ url string }

// startPrometheus starts one with the alerts, which ends with the test.
func startPrometheus(t *testing.T, scrapes string) prometheus {
	t.Helper()
	ports, err := freePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := filepath.Abs(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	dir, address := t.TempDir(), fmt.Sprintf("127.0.0.1:%d", ports[0])
	config := fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%q]\nscrape_configs:\n  - job_name: pgaccel\n    static_configs: [{targets: [%q]}]\n",
		rules, strings.TrimPrefix(scrapes, "http://"))
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(prometheusProgram(t, "prometheus"), "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	cmd.Stdout, cmd.Stderr = log, log
	if err := subprocess.Start(cmd, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("prometheus says\n%s", text)
		}
	})
	return prometheus{"http://" + address}
}

// get asks the API, and decodes what it answers into data.
func (p prometheus) get(path string, data any) error {
	r, err := web.Get(p.url + "/api/v1/" + path)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil {
		return fmt.Errorf("%s: %s: %w", path, r.Status, err)
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %s", path, answer.Error)
	}
	return nil
}

// series is how many series an expression has now.
func (p prometheus) series(expression string) (int, error) {
	var data struct{ Result []any }
	err := p.get("query?query="+url.QueryEscape(expression), &data)
	return len(data.Result), err
}

// expressions are those of the alerts and of the boards, whose variables have values.
func expressions(t *testing.T) (list []string) {
	t.Helper()
	var rules struct {
		Groups []struct{ Rules []struct{ Expr string } }
	}
	readYAML(t, rulesFile, &rules)
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			list = append(list, rule.Expr)
		}
	}
	alerts := len(list)
	values := strings.NewReplacer("$instance", ".*", "$__rate_interval", "1m", "$__range", "1h")
	for _, b := range boards(t) {
		before := len(list)
		for _, target := range b.targets() {
			if target.Expr != "" {
				list = append(list, values.Replace(target.Expr))
			}
		}
		if len(list) == before {
			t.Errorf("%s has no expressions", b.file)
		}
	}
	if alerts == 0 {
		t.Error("no alerts")
	}
	return list
}

// TestPrometheusScrapes: a Prometheus scrapes pgaccel and evaluates the alerts; what they and the boards select, by name
// and labels, is there once statements were answered here, on a device, and by the server, and checkpoints were saved.
func TestPrometheusScrapes(t *testing.T) {
	s := deviceStack(t, "CREATE TABLE scraped (id int PRIMARY KEY, v int);\nINSERT INTO scraped SELECT i, i % 7 FROM generate_series(1, 20000) i",
		"--data-dir", filepath.Join(t.TempDir(), "data"), "--checkpoint-interval", "100ms")
	conn := connect(t, s.proxy.url("postgres"))
	s.accelerates(t, 1, func() { ask(t, conn, "SELECT v, count(*) FROM scraped GROUP BY v", nil) })
	s.runsOnDevice(t, 1, func() {
		ask(t, connect(t, s.proxy.url("postgres", demandDevice)), "SELECT v, count(*) FROM scraped WHERE id > 5 GROUP BY v", nil)
	})
	s.forwardsAll(t, func() { ask(t, conn, "SELECT count(*), random() FROM scraped, pg_class", nil) })
	s.forwardsAll(t, func() { ask(t, conn, "SELECT sum(1 / v) FROM scraped", nil) }) // behind its gate
	if err := conn.CancelRequest(t.Context()); err != nil {
		t.Fatal(err)
	}

	p := startPrometheus(t, s.http)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	await := func(what string, done func() error) {
		t.Helper()
		for {
			err := done()
			if err == nil {
				return
			}
			select {
			case <-ctx.Done():
				t.Fatalf("%s: %v", what, err)
			case <-time.After(200 * time.Millisecond):
			}
		}
	}
	await("Prometheus", func() error {
		_, err := p.series("up")
		return err
	})
	selector := regexp.MustCompile(`\b(?:pgaccel|go|process)_[a-z0-9_]+(?:\{[^}]*\})?`)
	wanted := map[string]string{} // what is selected -> by what
	for _, expression := range expressions(t) {
		selectors := selector.FindAllString(expression, -1)
		if len(selectors) == 0 {
			t.Errorf("%s selects nothing of pgaccel's", expression)
		}
		for _, one := range selectors {
			wanted[one] = expression
		}
		if _, err := p.series(expression); err != nil {
			t.Error(err)
		}
	}
	await("series", func() error {
		for one := range wanted {
			n, err := p.series(one)
			if err != nil {
				return err
			}
			if n > 0 {
				delete(wanted, one)
			}
		}
		if len(wanted) > 0 {
			return fmt.Errorf("there are none of %v", slices.Collect(maps.Keys(wanted)))
		}
		return nil
	})
	type rule struct{ Name, Health, LastError, State string }
	await("the alerts", func() error {
		var data struct{ Groups []struct{ Rules []rule } }
		if err := p.get("rules", &data); err != nil {
			return err
		}
		if len(data.Groups) == 0 {
			return fmt.Errorf("no groups of rules")
		}
		for _, group := range data.Groups {
			for _, r := range group.Rules {
				if r.Health != "ok" || r.State != "inactive" { // unknown until it is evaluated
					return fmt.Errorf("%+v", r)
				}
			}
		}
		return nil
	})
}
