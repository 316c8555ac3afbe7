package integration

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

var updateCorpus = flag.Bool("update-corpus", false, "write corpus/refusals.txt anew")

// corpusZones are the time zones in which the corpus is asked beside those of its files.
var corpusZones = []string{"UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"}

// corpusTool is a file of the corpus: a client's session and what it asks.
type corpusTool struct {
	name       string
	format     []int16 // nil: simple
	startup    map[string]string
	session    []string
	statements []corpusStatement
}

type corpusStatement struct {
	name, sql  string
	types      []string // of the parameters; "" where the client says none
	values     []string
	begin, end []string
}

// readCorpus reads the files of the corpus: corpus/README.md says what is in them.
func readCorpus(t *testing.T) (tools []corpusTool) {
	t.Helper()
	files, err := filepath.Glob("corpus/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tool := corpusTool{name: strings.TrimSuffix(filepath.Base(file), ".sql"), startup: map[string]string{}}
		if tool.name == "schema" {
			continue
		}
		header, rest, _ := strings.Cut(string(text), "\n\n")
		for line := range strings.Lines(header) {
			key, value, directive := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, "--! ")), ": ")
			if !directive || !strings.HasPrefix(line, "--! ") {
				continue
			}
			switch key {
			case "protocol":
				tool.format = map[string][]int16{"text": {0}, "binary": {1}}[value]
			case "startup":
				name, setting, _ := strings.Cut(value, "=")
				tool.startup[name] = setting
			case "session":
				tool.session = append(tool.session, value)
			default:
				t.Fatalf("%s: %s", file, line)
			}
		}
		for block := range strings.SplitSeq(strings.TrimSpace(rest), "\n\n") {
			tool.statements = append(tool.statements, readCorpusStatement(t, strings.TrimSpace(block)))
		}
		tools = append(tools, tool)
	}
	return tools
}

func readCorpusStatement(t *testing.T, block string) (s corpusStatement) {
	t.Helper()
	first, rest, _ := strings.Cut(block, "\n")
	s.name = strings.TrimPrefix(first, "-- ")
	for strings.HasPrefix(rest, "--! ") {
		var line string
		line, rest, _ = strings.Cut(rest, "\n")
		key, value, _ := strings.Cut(strings.TrimPrefix(line, "--! "), ": ")
		switch {
		case key == "begin":
			s.begin = append(s.begin, value)
		case key == "end":
			s.end = append(s.end, value)
		case key == "$"+strconv.Itoa(len(s.values)+1):
			typ, v, _ := strings.Cut(value, " ")
			s.types, s.values = append(s.types, typ), append(s.values, v)
		default:
			t.Fatalf("%s: %s", s.name, line)
		}
	}
	s.sql = rest
	return s
}

// connect opens a session as the tool does, in the zone.
func (c corpusTool) connect(t *testing.T, to target, zone string) *pgconn.PgConn {
	t.Helper()
	config, err := pgconn.ParseConfig(to.url("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	for name, setting := range c.startup {
		config.RuntimeParams[name] = setting
	}
	config.RuntimeParams["TimeZone"] = zone
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	for _, sql := range c.session {
		must(t, conn, sql)
	}
	return conn
}

// corpusParams returns the parameters as the client sends them: the server has made the binary forms.
func corpusParams(t *testing.T, server *pgconn.PgConn, s corpusStatement, format []int16) (values [][]byte, oids []uint32, formats []int16) {
	t.Helper()
	for i, v := range s.values {
		if s.types[i] == "unknown" {
			values, oids, formats = append(values, []byte(v)), append(oids, 0), append(formats, 0)
			continue
		}
		r := server.ExecParams(t.Context(), "SELECT $1::text::"+s.types[i]+", '"+s.types[i]+"'::regtype::oid::text", [][]byte{[]byte(v)}, nil, nil, []int16{format[0], 0}).Read()
		if r.Err != nil {
			t.Fatalf("%s: $%d: %v", s.name, i+1, r.Err)
		}
		oid, err := strconv.ParseUint(string(r.Rows[0][1]), 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		values, oids, formats = append(values, r.Rows[0][0]), append(oids, uint32(oid)), append(formats, format[0])
	}
	return values, oids, formats
}

// parenthesised is what stands in innermost parentheses.
var parenthesised = regexp.MustCompile(`\([^()]*\)`)

// ordered reports whether the outermost SELECT has an ORDER BY.
func ordered(sql string) bool {
	for parenthesised.MatchString(sql) {
		sql = parenthesised.ReplaceAllString(sql, "")
	}
	return strings.Contains(strings.ToLower(sql), "order by")
}

// askCorpus asks one statement of the corpus with what is asked around it.
func askCorpus(t *testing.T, conn *pgconn.PgConn, s corpusStatement, format []int16, values [][]byte, oids []uint32, formats []int16) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, sql := range s.begin {
		must(t, conn, sql)
	}
	var a answer
	switch {
	case strings.HasPrefix(s.sql, "COPY"):
		var b bytes.Buffer
		tag, err := conn.CopyTo(ctx, &b, s.sql)
		a.rows, a.tag = []string{b.String()}, tag.String()
		a.note(err)
	case format == nil || len(s.begin)+len(s.end) > 0:
		a = ask(t, conn, s.sql, nil)
	default:
		a.read(conn.ExecParams(ctx, s.sql, values, oids, formats, format))
	}
	for _, sql := range s.end {
		must(t, conn, sql)
	}
	if a.err != "" {
		t.Fatalf("%s: %s", s.name, a.err)
	}
	if !ordered(s.sql) {
		slices.Sort(a.rows)
	}
	return a.String()
}

// TestCorpus asks what tools ask, as they ask it, in several time zones: the answers are the server's, byte for
// byte, and what is forwarded is what corpus/refusals.txt says.
func TestCorpus(t *testing.T) {
	schema, err := os.ReadFile("corpus/schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	s := privateStack(t, string(schema))
	tools := readCorpus(t)
	monitor := connect(t, s.proxy.url("postgres"))
	refused, total, here, parts := map[string]map[string][]string{}, 0, map[string]int{}, map[string]int{}
	var names []string
	for _, tool := range tools {
		total += len(tool.statements)
		for _, zone := range corpusZones {
			direct, proxy := tool.connect(t, s.direct, zone), tool.connect(t, s.proxy, zone)
			for _, statement := range tool.statements {
				name := tool.name + "/" + statement.name
				if zone == corpusZones[0] {
					if refused[name] != nil {
						t.Fatalf("%s: two statements of that name", name)
					}
					names, refused[name] = append(names, name), map[string][]string{}
				}
				values, oids, formats := corpusParams(t, direct, statement, tool.format)
				want := askCorpus(t, direct, statement, tool.format, values, oids, formats)
				before := s.metrics(t)
				accelerated, partial := s.queries(t, "accelerated"), s.queries(t, "partial")
				if got := askCorpus(t, proxy, statement, tool.format, values, oids, formats); got != want {
					t.Errorf("%s in %s: %s", name, zone, firstDifference([]byte(got), []byte(want)))
				}
				if s.queries(t, "accelerated") > accelerated {
					here[zone]++
				} else if s.queries(t, "partial") > partial {
					parts[zone]++
					why := corpusReason(t, s, monitor, before)
					refused[name]["in part: "+why] = append(refused[name]["in part: "+why], zone)
				} else {
					why := corpusReason(t, s, monitor, before)
					refused[name][why] = append(refused[name][why], zone)
				}
			}
			direct.Close(t.Context())
			proxy.Close(t.Context())
		}
	}
	if total < 300 {
		t.Errorf("the corpus has %d statements", total)
	}
	for _, zone := range corpusZones {
		t.Logf("%-20s %d of %d accelerated, and %d in part (%.1f %%)", zone, here[zone], total, parts[zone], 100*float64(here[zone]+parts[zone])/float64(total))
	}
	var list strings.Builder
	for _, name := range names {
		for why, zones := range refused[name] {
			if len(zones) == len(corpusZones) {
				fmt.Fprintf(&list, "%s: %s\n", name, why)
			} else {
				fmt.Fprintf(&list, "%s [%s]: %s\n", name, strings.Join(zones, ", "), why)
			}
		}
	}
	compareRefusals(t, list.String(), here, parts, total)
}

func compareRefusals(t *testing.T, list string, here, parts map[string]int, total int) {
	t.Helper()
	const name = "corpus/refusals.txt"
	if *updateCorpus {
		head := fmt.Sprintf("# Statements of the corpus that are not wholly accelerated, with all reasons (TestCorpus -update-corpus). Accelerated of %d:", total)
		for _, zone := range corpusZones {
			head += fmt.Sprintf(" %s %d and %d in part;", zone, here[zone], parts[zone])
		}
		if err := os.WriteFile(name, []byte(strings.TrimSuffix(head, ";")+".\n"+list), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, expected, _ := strings.Cut(string(file), "\n"); expected != list {
		t.Errorf("forwarded otherwise than %s says: %s", name, firstDifference([]byte(list), []byte(expected)))
	}
}

// corpusReason says why the last statement was forwarded.
func corpusReason(t *testing.T, s *stack, monitor *pgconn.PgConn, before map[string]bool) string {
	t.Helper()
	var reason string
	for line := range s.metrics(t) {
		if _, label, ok := strings.Cut(line, `reason="`); ok && !before[line] {
			label, _, _ = strings.Cut(label, `"`)
			if label != "" && label != "not a plain SELECT" || reason == "" {
				reason = label
			}
		}
	}
	if reason == "" || reason == "not a plain SELECT" {
		return reason
	}
	r := ask(t, monitor, "SELECT coalesce(detail, '') || coalesce('; ' || replace(also, E'\\n', '; '), '') FROM pgaccel.queries WHERE reason = '"+reason+"' ORDER BY last_used DESC LIMIT 1", nil)
	if len(r.rows) == 1 {
		detail, err := strconv.Unquote(strings.TrimSuffix(r.rows[0], "|"))
		if err != nil {
			t.Fatal(err)
		}
		reason += ": " + detail
	}
	return reason
}
