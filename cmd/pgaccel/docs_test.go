package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"pgaccel/internal/docpage"
)

// flagTable writes the flags of a command as a table; of those of serve it says which SIGHUP reads anew.
func flagTable(t *testing.T, command string) string {
	cmd, _, err := root().Find([]string{command})
	if err != nil {
		t.Fatal(err)
	}
	b := &strings.Builder{}
	b.WriteString("| flag | default | |\n|---|---|---|\n")
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Usage == "" {
			t.Errorf("nothing is said of --%s", f.Name)
		}
		kind, usage := pflag.UnquoteUsage(f)
		value := strings.Trim(f.DefValue, "[]")
		switch value {
		case "0", "0s", "0%", "false", "":
			value = "" // the usage says what that is
		default:
			value = "`" + value + "`"
		}
		if command == "serve" && slices.Contains(reloadable, f.Name) {
			usage += " (SIGHUP)"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", strings.TrimSpace("--"+f.Name+" "+strings.ReplaceAll(kind, "|", `\|`)), value, strings.NewReplacer("*", `\*`, "|", `\|`).Replace(usage))
	})
	return b.String()
}

// TestConfigurationPage: docs/configuration.md has each flag as the program has it.
func TestConfigurationPage(t *testing.T) {
	for _, command := range []string{"serve", "check", "advise"} {
		docpage.Section(t, "configuration.md", command, flagTable(t, command))
	}
}

var (
	shownFlag     = regexp.MustCompile("`--([a-z][a-z-]+)")
	shownVariable = regexp.MustCompile(`PGACCEL_[A-Z_]+`)
)

// TestPagesNameFlags: flags and variables that pages name are the program's, or one of these others'.
func TestPagesNameFlags(t *testing.T) {
	others := []string{"no-publications", "gpus", "target", "shm-size", "network", "add-host", "stop-timeout", "base", "bytes"}
	c := &configuration{known: map[string]bool{}}
	for _, cmd := range root().Commands() {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { c.known[f.Name] = true })
	}
	root().PersistentFlags().VisitAll(func(f *pflag.Flag) { c.known[f.Name] = true })
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range shownFlag.FindAllSubmatch(text, -1) {
			if named++; !c.known[string(m[1])] && !slices.Contains(others, string(m[1])) {
				t.Errorf("%s: there is no flag --%s", page, m[1])
			}
		}
		for _, name := range shownVariable.FindAll(text, -1) {
			if named++; len(c.unknownVariables([]string{string(name) + "="})) > 0 {
				t.Errorf("%s: there is no variable %s", page, name)
			}
		}
	}
	if named < 100 {
		t.Errorf("%d flags and variables are named", named)
	}
}
