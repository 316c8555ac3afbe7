package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"pgaccel/internal/server"
)

// databasesKey is the key of the file that is no flag: a mapping of databases by the name that clients give.
const databasesKey = "databases"

// fileDatabase is one of them.
type fileDatabase struct {
	server.Database
	passwordFile string
	at           string // file:line, for errors
}

// readDatabases reads the mapping of the file.
func (c *configuration) readDatabases(node *yaml.Node) error {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if node.Tag == "!!null" {
		return nil
	}
	if node.Kind != yaml.MappingNode {
		return fmt.Errorf("%s:%d: %s: want a line for each, such as \"shop: {upstream: postgres://user@host:5432/shop, accelerate: [public.*]}\"", c.file, node.Line, databasesKey)
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		d := fileDatabase{at: fmt.Sprintf("%s:%d", c.file, key.Line)}
		d.Name = key.Value
		if err := d.read(node.Content[i+1]); err != nil {
			return fmt.Errorf("%s: %s: %s: %w", d.at, databasesKey, d.Name, err)
		}
		if first := slices.IndexFunc(c.databases, func(o fileDatabase) bool { return o.Name == d.Name }); first >= 0 {
			return fmt.Errorf("%s: %s: %s is there twice, first at %s", d.at, databasesKey, d.Name, c.databases[first].at)
		}
		c.databases = append(c.databases, d)
	}
	return nil
}

// read reads one database, whose keys are read as flags' values are.
func (d *fileDatabase) read(node *yaml.Node) error {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if node.Kind != yaml.MappingNode {
		return errors.New("want its upstream, such as {upstream: postgres://user@host:5432/shop, accelerate: [public.*]}")
	}
	keys := pflag.NewFlagSet(databasesKey, pflag.ContinueOnError)
	keys.StringVar(&d.Upstream, "upstream", "", "")
	keys.StringVar(&d.passwordFile, "upstream-password-file", "", "")
	keys.StringSliceVar(&d.Accelerate, "accelerate", nil, "")
	keys.StringVar(&d.DataDir, "data-dir", "", "")
	given := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		f := keys.Lookup(key.Value)
		switch {
		case f == nil:
			return fmt.Errorf("line %d: unknown key %q: want upstream, upstream-password-file, accelerate or data-dir", key.Line, key.Value)
		case given[key.Value]:
			return fmt.Errorf("line %d: %s is there twice", key.Line, key.Value)
		}
		given[key.Value] = true
		if _, err := setNode(f, node.Content[i+1]); err != nil {
			return fmt.Errorf("line %d: %s: %w", key.Line, key.Value, err)
		}
	}
	if d.Upstream == "" {
		return errors.New("upstream is missing: the URL of its PostgreSQL server, such as postgres://user@host:5432/shop")
	}
	return nil
}

// withPasswords returns the file's databases with the passwords that files have.
func (c *configuration) withPasswords(warn func(string)) ([]server.Database, error) {
	var list []server.Database
	for _, d := range c.databases {
		upstream, err := withPassword(d.Upstream, d.passwordFile, warn)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %s: %w", d.at, databasesKey, d.Name, err)
		}
		d.Upstream = upstream
		list = append(list, d.Database)
	}
	return list, nil
}

// databasesAfter returns what runs with the patterns that the file has now, and whether that differs, and whether the file has
// what takes a restart.
func (c *configuration) databasesAfter(before *configuration, running []server.Database) (list []server.Database, changed, restart bool) {
	restart = len(c.databases) != len(before.databases)
	for i, d := range running {
		at := slices.IndexFunc(c.databases, func(o fileDatabase) bool { return o.Name == d.Name })
		if at < 0 {
			restart = true
			list = append(list, d)
			continue
		}
		now, was := &c.databases[at], &before.databases[i]
		restart = restart || now.Upstream != was.Upstream || now.passwordFile != was.passwordFile || now.DataDir != was.DataDir
		changed = changed || !slices.Equal(now.Accelerate, d.Accelerate)
		d.Accelerate = now.Accelerate
		list = append(list, d)
	}
	return list, changed, restart
}

// configuredDatabases reads the configuration of a command that looks at databases, warns, and returns those that there are: the
// one of --upstream, of which the flags are, where it is given, and the file's.
func configuredDatabases(cmd *cobra.Command, upstream, passwordFile *string, patterns *[]string) ([]server.Database, error) {
	warn := func(text string) { fmt.Fprintln(cmd.ErrOrStderr(), "pgaccel: warning:", text) }
	c, warnings, err := configure(cmd)
	if err != nil {
		return nil, err
	}
	for _, text := range warnings {
		warn(text)
	}
	var list []server.Database
	if *upstream != "" {
		text, err := withPassword(*upstream, *passwordFile, warn)
		if err != nil {
			return nil, err
		}
		list = append(list, server.Database{Upstream: text, Accelerate: *patterns})
	}
	others, err := c.withPasswords(warn)
	if list = append(list, others...); err == nil && len(list) == 0 {
		err = errors.New("--upstream is missing: the URL of the PostgreSQL server")
	}
	return list, err
}

// heading says of which of several databases what follows is.
func heading(cmd *cobra.Command, i int, d server.Database) {
	if i > 0 {
		fmt.Fprintln(cmd.OutOrStdout())
	}
	fmt.Fprintf(cmd.OutOrStdout(), "# %s\n", cmp.Or(d.Name, "--upstream"))
}
