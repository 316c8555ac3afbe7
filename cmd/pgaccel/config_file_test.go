package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"pgaccel/internal/server"
)

// configured returns serve's flags as arguments and a file give them.
func configured(t *testing.T, command, file string, args ...string) (*cobra.Command, []string, error) {
	t.Helper()
	if file != "" {
		path := filepath.Join(t.TempDir(), "serve.yml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config", path)
	}
	cmd, rest, err := root().Find(append([]string{command}, args...))
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return cmd, nil, err
	}
	_, warnings, err := configure(cmd)
	return cmd, warnings, err
}

// TestConfigurationErrors: what is wrong is named with where it is from and what to write.
func TestConfigurationErrors(t *testing.T) {
	for _, c := range []struct{ file, arg, variable, want string }{
		{arg: "--workers=-3", want: "--workers: -3 is less than 0"},
		{arg: "--max-clients=0", want: "--max-clients: 0 is less than 1"},
		{arg: "--memory=1", want: "--memory: 1 is less than 1MiB"},
		{arg: "--wait-limit=-50ms", want: "--wait-limit: -50ms is less than 0s"},
		{variable: "PGACCEL_WORKERS=-3", want: "PGACCEL_WORKERS: -3 is less"},
		{variable: "PGACCEL_MEMORY=much", want: `PGACCEL_MEMORY: "much"`},
		{file: "log-level: info\n\nworkers: -3\n", want: "serve.yml:3: workers: -3 is less"},
		{file: "memory: much", want: `serve.yml:1: memory: "much"`},
		{file: "log-level: info\nmemroy: 1GiB", want: `serve.yml:2: unknown key "memroy"`},
		{file: "memory: 1GiB\nmemory: 2GiB", want: "serve.yml:2: memory is there twice"},
		{file: "memory: [1GiB]", want: "serve.yml:1: memory: want one value"},
		{file: "memory: 1GiB\nworkers: b: c", want: "serve.yml:"},
		{file: "- memory", want: "serve.yml:1: want lines"},
		{arg: "--log-format=JSON", want: `--log-format: "JSON" is none of text, json`},
		{variable: "PGACCEL_TLS_REQUIRE=maybe", want: `PGACCEL_TLS_REQUIRE: "maybe" is none of on, off`},
		{file: "tls-require: maybe", want: `serve.yml:1: tls-require: "maybe" is none of`},
		{file: "accelerate: !public.secret", want: "serve.yml:1: accelerate: a value that begins with ! or * is in quotes"},
		{file: "accelerate:\n  - public.*\n  - !public.secret", want: "serve.yml:2: accelerate: line 3: a value that begins with ! or *"},
		{file: "accelerate: [public.*, !public.secret]", want: "serve.yml:1: did not find expected ',' or ']' (a value that begins with ! or * is in quotes"},
		{file: "accelerate: *.sales", want: "a value that begins with ! or * is in quotes"},
		{file: "workers: 1\n---\nworkers: 2", want: "serve.yml:2: a second document"},
	} {
		t.Run(c.want, func(t *testing.T) {
			if name, value, ok := strings.Cut(c.variable, "="); ok {
				t.Setenv(name, value)
			}
			var args []string
			if c.arg != "" {
				args = []string{c.arg}
			}
			if _, _, err := configured(t, "serve", c.file, args...); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestConfigurationOrder: the command line wins over the environment, that over the file,
// which serves all commands.
func TestConfigurationOrder(t *testing.T) {
	t.Setenv("PGACCEL_WORKERS", "2")
	t.Setenv("PGACCEL_MAX_CLIENTS", "20")
	t.Setenv("PGACCEL_HTTP", "")
	t.Setenv("PGACCEL_MEMROY", "1")
	t.Setenv("PGACCEL_PORT_6432_TCP", "tcp://10.0.0.1:6432")
	t.Setenv("PGACCEL_SERVICE_HOST", "10.0.0.1")
	const file = "workers: 3\nmax-clients: 30\naccelerate: [a, 'b.*']\ntrials: off\nhttp: 127.0.0.1:1\ndata-dir:\n"
	cmd, warnings, err := configured(t, "serve", file, "--workers=1")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"workers": "1", "max-clients": "20", "accelerate": "[a,b.*]", "trials": "off", "http": "", "data-dir": ""} {
		if got := cmd.Flags().Lookup(name).Value.String(); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if len(warnings) != 1 || !strings.HasPrefix(warnings[0], "PGACCEL_MEMROY ") {
		t.Errorf("%q", warnings)
	}
	if cmd, _, err = configured(t, "check", file); err != nil || cmd.Flags().Lookup("accelerate").Value.String() != "[a,b.*]" {
		t.Errorf("check: %v", err)
	}
}

// variableRead is a variable where Go or a script reads it.
var variableRead = regexp.MustCompile(`(?:Getenv|LookupEnv|number)\("(PGACCEL_[A-Z_]+)"|(?:Variable|range map\[string\]\*uint64)[^\n]*"(PGACCEL_[A-Z_]+)"|\$\{?(PGACCEL_[A-Z_]+)|\n\s*(PGACCEL_[A-Z_]+)=`)

// TestVariablesAreKnown: nobody is warned of a variable that something here reads.
func TestVariablesAreKnown(t *testing.T) {
	cmd, _, err := configured(t, "serve", "")
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := configure(cmd)
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	top := filepath.Join("..", "..")
	err = filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && (path == filepath.Join(top, "build") || len(name) > 2 && name[0] == '.'):
			return filepath.SkipDir
		case filepath.Ext(name) != ".go" && filepath.Ext(name) != ".sh" && name != "Makefile", path == filepath.Join(top, "cmd", "pgaccel", "config_file_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, groups := range variableRead.FindAllStringSubmatch(string(text), -1) {
			name := strings.Join(groups[1:], "")
			if read++; len(c.unknownVariables([]string{name + "=1"})) > 0 {
				t.Errorf("%s reads %s", path, name)
			}
		}
		return nil
	})
	if err != nil || read < 20 {
		t.Errorf("%d variables are read: %v", read, err)
	}
}

// TestVersionFlag: --version says what the command version does.
func TestVersionFlag(t *testing.T) {
	said := map[string]string{}
	for _, arg := range []string{"--version", "version"} {
		var b bytes.Buffer
		cmd := root()
		cmd.SetOut(&b)
		cmd.SetArgs([]string{arg})
		if err := cmd.Execute(); err != nil {
			t.Fatal(err)
		}
		said[arg] = b.String()
	}
	if want := "pgaccel " + server.Version() + "\n"; said["--version"] != want || said["version"] != want {
		t.Errorf("%q, want %q", said, want)
	}
}
