package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// logicFiles lists the test files of sqllogictest below a folder whose names begin with
// one of prefixes.
func logicFiles(dir string, prefixes []string) (files []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".test" {
			return err
		}
		name, err := filepath.Rel(dir, path)
		for _, p := range prefixes {
			if strings.HasPrefix(name, p) {
				files = append(files, name)
				break
			}
		}
		return err
	})
	return files, err
}

// logicScript makes a script for psql of a file of sqllogictest: its statements and
// queries without what they are expected to return, in a schema of their own, which goes afterwards:
// of tables of one name in several schemas one is found without its schema.
func logicScript(dir, name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return "", err
	}
	schema := strings.NewReplacer("/", "_", ".", "_").Replace(name)
	return fmt.Sprintf("CREATE SCHEMA %s;\nSET search_path = %[1]s;\n", schema) + logicStatements(string(text)) +
		"SET client_min_messages = warning;\nDROP SCHEMA " + schema + " CASCADE;\n", nil
}

// logicStatements leaves out what is not for PostgreSQL.
func logicStatements(text string) string {
	var b strings.Builder
	for record := range strings.SplitSeq(strings.ReplaceAll(text, "\r\n", "\n"), "\n\n") {
		lines := strings.Split(strings.Trim(record, "\n"), "\n")
		skip := false
		for len(lines) > 0 {
			word, rest, _ := strings.Cut(lines[0], " ")
			db, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
			if word == "skipif" {
				skip = skip || db == "postgresql"
			} else if word == "onlyif" {
				skip = skip || db != "postgresql"
			} else if word != "" && word[0] != '#' {
				break
			}
			lines = lines[1:]
		}
		if skip || len(lines) < 2 || !strings.HasPrefix(lines[0], "statement") && !strings.HasPrefix(lines[0], "query") {
			continue
		}
		sql, _, _ := strings.Cut(strings.Join(lines[1:], "\n"), "\n----")
		b.WriteString(strings.TrimRight(sql, "; \n") + ";\n")
	}
	return b.String()
}
