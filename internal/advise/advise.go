package advise

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"pgaccel/catalog"
	"pgaccel/replica"
)

// Options say what is asked.
type Options struct {
	Upstream   string
	Accelerate []string // patterns of the tables that are looked at
	Memory     int64    // what columns may take, bytes
	Statements bool     // by pg_stat_statements
	Top        int      // statements that are planned
}

// Report is the advice. Its fields are those of the JSON.
type Report struct {
	Database string `json:"database"`
	Role     string `json:"role"`
	// Since is when the statistics of tables began; null where nobody knows.
	Since       *time.Time `json:"statistics_since"`
	MemoryLimit int64      `json:"memory_limit_bytes"`
	// MemoryAll is what all tables would take.
	MemoryAll  int64        `json:"memory_all_tables_bytes"`
	Tables     []*table     `json:"tables"`
	Refused    []need       `json:"refused,omitempty"`
	Missing    []string     `json:"patterns_without_match,omitempty"`
	Statements []*statement `json:"statements,omitempty"`
	// StatementsTotalMS is the time of all statements; of StatementsCount, the first of which are in Statements.
	StatementsTotalMS float64  `json:"statements_total_ms,omitempty"`
	StatementsCount   int64    `json:"statements_count,omitempty"`
	Accelerate        []string `json:"accelerate"` // recommended
	Memory            int64    `json:"memory_bytes"`
	Command           string   `json:"command,omitempty"`
	// ShareAccelerated and SharePartial are of the time of the statements, those whose tables are all recommended.
	ShareAccelerated float64 `json:"share_accelerated,omitempty"`
	SharePartial     float64 `json:"share_partial,omitempty"`

	statements bool
}

// Run asks the server. It changes nothing there.
func Run(ctx context.Context, o Options) (*Report, error) {
	s, err := replica.NewSurvey(ctx, o.Upstream, o.Accelerate)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	r := &Report{Role: s.Role, MemoryLimit: o.Memory, Missing: s.Missing, Accelerate: []string{}, statements: o.Statements}
	if err := s.Conn.QueryRow(ctx, `SELECT pg_catalog.current_database()::pg_catalog.text,
		(SELECT d.stats_reset FROM pg_catalog.pg_stat_database d WHERE d.datname = pg_catalog.current_database())`).Scan(&r.Database, &r.Since); err != nil {
		return nil, err
	}
	var all *statements
	if o.Statements { // first, as it may be an error
		if all, err = readStatements(ctx, s, o.Top); err != nil {
			return nil, err
		}
	}
	if r.Tables, err = tablesOf(ctx, s); err != nil {
		return nil, err
	}
	for _, t := range r.Tables {
		r.MemoryAll += t.Memory.Bytes
	}
	for _, f := range s.Refused {
		r.Refused = append(r.Refused, need{Table: f.Schema + "." + f.Name, Reason: f.Reason, SQL: f.SQL})
	}
	if all == nil {
		chooseByUse(r.Tables, o.Memory)
	} else {
		if err := all.decide(ctx, s, sized(s.Catalog, r.Tables)); err != nil {
			return nil, err
		}
		r.Statements, r.StatementsTotalMS, r.StatementsCount = all.list, all.totalMS, all.count
		chooseByStatements(r.Tables, all, o.Memory, false)
		r.ShareAccelerated, r.SharePartial = all.taken(r.Tables, accelerated), all.taken(r.Tables, partial)
	}
	if patterns := patternsFor(r.Tables); patterns != nil {
		r.Accelerate, r.Memory = patterns, memoryFor(r.Tables, o.Memory)
		r.Command = command(s, patterns, r.Memory)
	}
	return r, nil
}

// Memory is the column memory that the tables of the patterns need, and how many there are, and of how many it is guessed by types.
func Memory(ctx context.Context, upstream string, patterns []string) (bytes int64, tables, guessed int, err error) {
	s, err := replica.NewSurvey(ctx, upstream, patterns)
	if err != nil {
		return 0, 0, 0, err
	}
	defer s.Close()
	all, err := tablesOf(ctx, s)
	for _, t := range all {
		if bytes += t.Memory.Bytes; t.Memory.Method == byTypes {
			guessed++
		}
	}
	return bytes, len(all), guessed, err
}

// sized is a catalog with the rows that tables have now, as package engine plans with those of the copies.
func sized(cat *catalog.Catalog, tables []*table) *catalog.Catalog {
	out := *cat
	out.Tables = nil
	for _, meta := range cat.Tables {
		for _, t := range tables {
			if t.meta.OID == meta.OID {
				copied := *meta
				copied.Rows = t.Memory.Rows
				meta, t.meta = &copied, &copied
				break
			}
		}
		out.Tables = append(out.Tables, meta)
	}
	return &out
}

// command is the line to try. It has no password: those belong in a file.
func command(s *replica.Survey, patterns []string, bytes int64) string {
	c := s.Conn.Config()
	upstream := (&url.URL{Scheme: "postgres", User: url.User(c.User), Host: c.Host + ":" + strconv.Itoa(int(c.Port)), Path: "/" + c.Database}).String()
	if strings.HasPrefix(c.Host, "/") {
		upstream = fmt.Sprintf("host=%s port=%d user=%s dbname=%s", c.Host, c.Port, c.User, c.Database)
	} else if strings.Contains(c.Host, ":") {
		upstream = (&url.URL{Scheme: "postgres", User: url.User(c.User), Host: "[" + c.Host + "]:" + strconv.Itoa(int(c.Port)), Path: "/" + c.Database}).String()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "pgaccel serve --upstream %s", quoted(upstream))
	for _, p := range patterns {
		fmt.Fprintf(&b, " --accelerate %s", quoted(p))
	}
	fmt.Fprintf(&b, " --memory %s", exact(bytes))
	return b.String()
}

// quoted quotes a word for a shell.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// exact writes a size as --memory takes it.
func exact(bytes int64) string {
	if bytes%(1<<30) == 0 {
		return strconv.FormatInt(bytes>>30, 10) + "GiB"
	} else if bytes%(1<<20) == 0 {
		return strconv.FormatInt(bytes>>20, 10) + "MiB"
	}
	return strconv.FormatInt(bytes, 10)
}

// JSON writes the report for programs.
func (r *Report) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}
