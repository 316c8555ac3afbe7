package main

import (
	"fmt"
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
