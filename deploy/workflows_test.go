// Package deploy tests what GitHub runs.
package deploy

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/rhysd/actionlint"
	"sigs.k8s.io/yaml"
)

// TestWorkflows: actionlint finds nothing wrong, of contexts, outputs, actions' inputs and, where the machine has
// shellcheck, scripts.
func TestWorkflows(t *testing.T) {
	files, err := filepath.Glob("../.github/workflows/*.yml")
	if err != nil || len(files) < 2 {
		t.Fatalf("workflows: %q, %v", files, err)
	}
	linter, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{Shellcheck: "shellcheck"})
	if err != nil {
		t.Fatal(err)
	}
	patch := regexp.MustCompile(`(uses: .*@v\d+)\.\d+\.\d+`) // of actions it knows major versions
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found, err := linter.Lint(file, patch.ReplaceAll(text, []byte("$1")), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range found {
			t.Error(e)
		}
	}
}

// TestWorkflowsHaveFewRights: the token may read the sources, and what else a job needs that job says. Runs end.
func TestWorkflowsHaveFewRights(t *testing.T) {
	files, _ := filepath.Glob("../.github/workflows/*.yml")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var w struct {
			Permissions map[string]string
			Jobs        map[string]struct {
				Timeout int `json:"timeout-minutes"`
			}
		}
		if err := yaml.Unmarshal(text, &w); err != nil {
			t.Fatal(err)
		}
		if len(w.Permissions) != 1 || w.Permissions["contents"] != "read" {
			t.Errorf("%s: permissions %v", file, w.Permissions)
		}
		for name, job := range w.Jobs {
			if job.Timeout == 0 {
				t.Errorf("%s: job %s has no timeout", file, name)
			}
		}
		if len(w.Jobs) == 0 {
			t.Errorf("%s has no jobs", file)
		}
	}
}
