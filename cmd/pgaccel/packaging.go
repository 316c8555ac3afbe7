//go:build packaging

package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra/doc"

	"pgaccel/internal/server"
)

// With the tag packaging this is a program that writes what packages have beside pgaccel, into a folder: manual pages
// into man, and shells' completion scripts (scripts/packages.sh). What writes them is no part of pgaccel.
func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: packaging FOLDER")
		os.Exit(2)
	}
	if err := generate(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "packaging:", err)
		os.Exit(1)
	}
}

func generate(folder string) error {
	man := filepath.Join(folder, "man")
	if err := os.MkdirAll(man, 0o755); err != nil {
		return err
	}
	cmd := root()
	cmd.DisableAutoGenTag = true
	// The date is that of SOURCE_DATE_EPOCH.
	err := doc.GenManTree(cmd, &doc.GenManHeader{Section: "1", Source: "pgaccel " + server.Version(), Manual: "pgaccel"}, man)
	return cmp.Or(err,
		cmd.GenBashCompletionFileV2(filepath.Join(folder, "completion.bash"), true),
		cmd.GenZshCompletionFile(filepath.Join(folder, "completion.zsh")),
		cmd.GenFishCompletionFile(filepath.Join(folder, "completion.fish"), true))
}
