package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// configuration is where flags' values come from beside the command line. A flag there
// wins over the environment (--max-clients is PGACCEL_MAX_CLIENTS), the environment over
// the YAML file that --config names, which has keys for the flags of every command, and databases.
type configuration struct {
	file  string
	known map[string]bool // flags of all commands
	keys  map[string]*yaml.Node
	// databases are those of the file, in its order.
	databases []fileDatabase
}

// configure gives the flags of cmd their values, and returns what was read and what is to
// be warned of.
func configure(cmd *cobra.Command) (*configuration, []string, error) {
	c := &configuration{known: map[string]bool{}}
	for _, one := range cmd.Root().Commands() {
		one.Flags().VisitAll(func(f *pflag.Flag) { c.known[f.Name] = true })
	}
	delete(c.known, "config")
	delete(c.known, "help")
	if f := cmd.Flags().Lookup("config"); f != nil {
		if c.file = f.Value.String(); !f.Changed && os.Getenv("PGACCEL_CONFIG") != "" {
			c.file = os.Getenv("PGACCEL_CONFIG")
		}
	}
	if err := c.read(); err != nil {
		return nil, nil, err
	}
	return c, c.unknownVariables(os.Environ()), c.apply(cmd.Flags())
}

var yamlLine = regexp.MustCompile(`^line (\d+): (.*)`)

// bareValue is a value that begins with ! or *.
var bareValue = regexp.MustCompile(`(?:\[|[,:-]\s)\s*[!*][\w.*]`)

// read reads the file.
func (c *configuration) read() error {
	if c.file == "" {
		return nil
	}
	text, err := os.ReadFile(c.file)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--config %s: no such file", c.file)
	} else if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	var document, second yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(text))
	err = d.Decode(&document)
	if err == nil {
		if err = d.Decode(&second); err == nil {
			return fmt.Errorf("%s:%d: a second document: want one, without a line --- in it", c.file, second.Line)
		}
	}
	if !errors.Is(err, io.EOF) {
		at, said := "", strings.TrimPrefix(err.Error(), "yaml: ")
		if line := yamlLine.FindStringSubmatch(said); line != nil {
			at, said = ":"+line[1], line[2]
		}
		if bareValue.Match(text) { // an error may have that cause, and says nothing of it
			said += " (" + errTag.Error() + ")"
		}
		return fmt.Errorf("%s%s: %s", c.file, at, said)
	}
	c.keys = map[string]*yaml.Node{}
	if len(document.Content) == 0 || document.Content[0].Tag == "!!null" {
		return nil // an empty file
	}
	top := document.Content[0]
	if top.Kind != yaml.MappingNode {
		return fmt.Errorf("%s:%d: want lines such as \"max-clients: 100\"", c.file, top.Line)
	}
	for i := 0; i+1 < len(top.Content); i += 2 {
		key := top.Content[i]
		name := strings.ToLower(key.Value)
		switch {
		case !c.known[name] && name != databasesKey:
			return fmt.Errorf("%s:%d: unknown key %q: keys are the names of flags without --, and databases", c.file, key.Line, key.Value)
		case c.keys[name] != nil:
			return fmt.Errorf("%s:%d: %s is there twice, first in line %d", c.file, key.Line, name, c.keys[name].Line)
		}
		c.keys[name] = top.Content[i+1]
		if name == databasesKey {
			if err := c.readDatabases(top.Content[i+1]); err != nil {
				return err
			}
		}
	}
	return nil
}

// apply gives flags that are not on the command line their values, and checks all.
func (c *configuration) apply(flags *pflag.FlagSet) (err error) {
	flags.VisitAll(func(f *pflag.Flag) {
		if err != nil || !c.known[f.Name] {
			return
		}
		origin, given := "--"+f.Name, f.Changed
		if !given {
			if given, err = c.fromEnvironment(f); given {
				origin = variable(f.Name)
			}
		}
		if node := c.keys[f.Name]; !given && node != nil {
			origin = fmt.Sprintf("%s:%d: %s", c.file, node.Line, f.Name)
			given, err = setNode(f, node)
		}
		if err == nil && given {
			if check := checks[f.Name]; check != nil {
				err = check(f.Value.String())
			}
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", origin, err)
		}
	})
	return err
}

func variable(flag string) string {
	return "PGACCEL_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// fromEnvironment sets a flag to its variable, where there is one. One that is empty is
// as none, as compose files have them, but for --http, where that is none.
func (c *configuration) fromEnvironment(f *pflag.Flag) (given bool, err error) {
	text, there := os.LookupEnv(variable(f.Name))
	if !there || text == "" && f.Name != "http" {
		return false, nil
	}
	return true, setText(f, text)
}

func setText(f *pflag.Flag, text string) error {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		return list.Replace(strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' }))
	}
	if err := f.Value.Set(text); err != nil {
		return fmt.Errorf("%q: %w", text, err)
	}
	return nil
}

// setNode sets a flag to a value of the file. No value is as no key.
func setNode(f *pflag.Flag, node *yaml.Node) (given bool, err error) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	list, isList := f.Value.(pflag.SliceValue)
	switch {
	case node.Tag == "!!null":
		return false, nil
	case hasTag(node):
		return true, errTag
	case node.Kind == yaml.ScalarNode:
		return true, setText(f, node.Value)
	case node.Kind != yaml.SequenceNode || !isList:
		return true, errors.New("want one value")
	}
	var values []string
	for _, one := range node.Content {
		switch {
		case one.Kind != yaml.ScalarNode:
			return true, fmt.Errorf("line %d: want one value", one.Line)
		case hasTag(one):
			return true, fmt.Errorf("line %d: %w", one.Line, errTag)
		}
		values = append(values, one.Value)
	}
	return true, list.Replace(values)
}

// hasTag reports whether YAML has taken what begins with ! as a tag: the value is not what was meant.
func hasTag(node *yaml.Node) bool {
	return strings.HasPrefix(node.Tag, "!") && !strings.HasPrefix(node.Tag, "!!")
}

var errTag = errors.New("a value that begins with ! or * is in quotes in YAML: '!public.secret'")

// others are variables that are no flags.
var others = []string{"PGACCEL_CONFIG", "PGACCEL_SIMD", "PGACCEL_GPU_CACHE_DIR", "PGACCEL_NVRTC", "PGACCEL_NVJITLINK", "PGACCEL_EMULATOR", "PGACCEL_EMU_DEVICES",
	"PGACCEL_EMU_FAULTS", "PGACCEL_EMU_MEMORY", "PGACCEL_EMU_SMS", "PGACCEL_PG_BINDIR", "PGACCEL_PROGRAM", "PGACCEL_RACE", "PGACCEL_GPU_PROGRAM",
	// Of tests and benchmarks, whose pgaccel has their environment.
	"PGACCEL_BATCHES", "PGACCEL_BENCH_ROWS", "PGACCEL_CUDA_SOURCES", "PGACCEL_EMULATOR_SOURCES", "PGACCEL_EVENTS_QUERY", "PGACCEL_EVENTS_ROWS", "PGACCEL_FAKE_CUDA",
	"PGACCEL_SEED", "PGACCEL_SSB_PARTS", "PGACCEL_SSB_QUERY", "PGACCEL_SSB_SCALE", "PGACCEL_SSB_SIMD", "PGACCEL_STREAMS"}

// service are the variables that Kubernetes sets for a service of that name.
var service = regexp.MustCompile(`_SERVICE_HOST$|_SERVICE_PORT(_\w+)?$|_PORT(_\d+_(TCP|UDP|SCTP)(_PROTO|_PORT|_ADDR)?)?$`)

// unknownVariables says which variables look as if they were pgaccel's.
func (c *configuration) unknownVariables(environment []string) (warnings []string) {
	for _, one := range environment {
		name, _, _ := strings.Cut(one, "=")
		rest, ours := strings.CutPrefix(name, "PGACCEL_")
		if !ours || slices.Contains(others, name) || strings.HasPrefix(rest, "TEST_") || service.MatchString(name) || c.known[strings.ToLower(strings.ReplaceAll(rest, "_", "-"))] {
			continue
		}
		warnings = append(warnings, name+" is set, but there is no flag --"+strings.ToLower(strings.ReplaceAll(rest, "_", "-")))
	}
	slices.Sort(warnings)
	return warnings
}

// share is a flag for a part of a whole: 1%, or 0.01.
type share float64

// String implements pflag.Value.
func (p *share) String() string { return strconv.FormatFloat(float64(*p)*100, 'g', -1, 64) + "%" }

// Set implements pflag.Value.
func (p *share) Set(s string) error {
	number, percent := strings.CutSuffix(strings.TrimSpace(s), "%")
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		n /= 100
	}
	if err != nil || !(n >= 0 && n <= 1) {
		return fmt.Errorf("%q is not a share such as 1%% or 0.01", s)
	}
	*p = share(n)
	return nil
}

// Type implements pflag.Value.
func (p *share) Type() string { return "share" }

// optionalDuration is a flag for a duration from 0, or off.
type optionalDuration struct{ value *time.Duration }

// String implements pflag.Value.
func (o *optionalDuration) String() string {
	if o.value == nil {
		return "off"
	}
	return o.value.String()
}

// Set implements pflag.Value.
func (o *optionalDuration) Set(s string) error {
	if s == "off" {
		o.value = nil
		return nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return fmt.Errorf("%q is neither a duration such as 500ms nor off", s)
	}
	o.value = &d
	return nil
}

// Type implements pflag.Value.
func (o *optionalDuration) Type() string { return "duration" }

// toggle is a flag's value on or off, in a YAML file true or false, too.
type toggle bool

// String implements pflag.Value.
func (t *toggle) String() string {
	if *t {
		return "on"
	}
	return "off"
}

// Set implements pflag.Value.
func (t *toggle) Set(s string) error {
	switch s {
	case "on", "true":
		*t = true
	case "off", "false":
		*t = false
	default:
		return fmt.Errorf("%q is neither on nor off", s)
	}
	return nil
}

// Type implements pflag.Value.
func (t *toggle) Type() string { return "on|off" }
