package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// command runs a command in dir and returns what it prints.
func command(t *testing.T, dir string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// scratch is a repository with the sources as they are here.
func scratch(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	command(t, "..", "sh", "-c", `git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents --no-dereference --target-directory "$0"`, dir)
	command(t, dir, "git", "init", "--quiet")
	commit(t, dir)
	return dir
}

func commit(t *testing.T, dir string) {
	t.Helper()
	command(t, dir, "git", "add", "--all")
	command(t, dir, "git", "-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "--quiet", "--message", "test")
}

// TestPublishAs: under another name every import is found, none of the old ones is left, and nothing but names has changed:
// a second name makes of the first what it makes of the sources.
func TestPublishAs(t *testing.T) {
	const first, second, secondImage = "github.com/An-Owner/pgaccel", "code.example.org/a/b.c/pgaccel", "registry.example.org/a/pgaccel"
	old := strings.Fields(command(t, "..", "head", "-1", "go.mod"))[1]
	twice, once := scratch(t), scratch(t)

	command(t, twice, "scripts/publish-as.sh", first)
	command(t, twice, "go", "list", "-test", "-deps", "./...")
	command(t, filepath.Join(twice, "deploy"), "go", "list", "-test", "-deps", "./...")
	if out := command(t, twice, "sh", "-c", "gofmt -l $(git ls-files '*.go')"); out != "" {
		t.Errorf("gofmt wants %s", out)
	}
	for file, want := range map[string]string{
		"deploy/helm/pgaccel/values.yaml": "\n  repository: ghcr.io/an-owner/pgaccel\n",
		"deploy/helm/pgaccel/Chart.yaml":  "\nhome: https://" + first + "\n",
		"deploy/packages/nfpm.yaml":       "\nhomepage: https://" + first + "\n",
		"docs/install.md":                 "image.repository=ghcr.io/an-owner/pgaccel,",
		"bench/roaring/go.mod":            "\nreplace " + first + " => ../..\n",
		"scripts/packages.sh":             "-X " + first + "/internal/server.version=",
	} {
		text, err := os.ReadFile(filepath.Join(twice, file))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), want) {
			t.Errorf("%s has no %q", file, want)
		}
	}
	left := exec.Command("git", "grep", "-nE", `(^|[^A-Za-z0-9_./@-])`+strings.ReplaceAll(old, ".", `\.`)+`/(internal|cmd|proxy|engine|replica|deploy|bench)([^a-z]|$)`)
	left.Dir = twice
	if out, err := left.Output(); err == nil {
		t.Errorf("of the old name there is left\n%s", out)
	}

	commit(t, twice)
	for _, dir := range []string{twice, once} {
		command(t, dir, "scripts/publish-as.sh", second, secondImage)
		commit(t, dir)
	}
	tree := func(dir string) string { return command(t, dir, "git", "rev-parse", "HEAD^{tree}") }
	if tree(once) != tree(twice) {
		out, _ := exec.Command("diff", "--recursive", "--exclude=.git", once, twice).Output()
		t.Errorf("two names, one after the other:\n%s", out[:min(len(out), 3000)])
	}
}

// TestPublishAsRefuses: what is no module's path, and hosts whose registry is not known.
func TestPublishAsRefuses(t *testing.T) {
	for _, args := range [][]string{{}, {"pgaccel"}, {"https://github.com/owner/pgaccel"}, {"github.com"}, {"code.example.org/a/pgaccel"}} {
		out, err := exec.Command("../scripts/publish-as.sh", args...).CombinedOutput()
		if err == nil || !strings.HasPrefix(string(out), "want ") {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
	}
}
