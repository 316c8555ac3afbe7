package referee

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
)

// renames numbers the copies of schemas.
var renames atomic.Int64

// script is one question with all that it needs, as a file of SQL:
//
//	-- what it is about
//	CREATE TABLE t_f (k0 integer, PRIMARY KEY (k0));
//	INSERT INTO t_f VALUES ('1');
//	-- settings
//	SET TimeZone = 'UTC';
//	-- ask extended {1}
//	-- with '5'/23
//	SELECT count(*) FROM t_f WHERE k0 = $1;
//
// A line "-- accelerated" before the question says that pgaccel must be the one to
// answer it; "-- changes" begins statements that run after the tables are copied; a line
// "-- collation icu" names the run's where that is not C.
type script struct {
	head        []string
	setup       []string
	changes     []string
	settings    []string
	p           protocol
	bounds      []bound
	accelerated bool
	collation   string
	sql         string
}

// String writes the script.
func (s *script) String() string {
	var b strings.Builder
	for _, h := range s.head {
		b.WriteString("-- " + h + "\n")
	}
	put := func(list []string) {
		for _, q := range list {
			b.WriteString(q + ";\n")
		}
	}
	if s.collation != "" && s.collation != "C" {
		b.WriteString("-- collation " + s.collation + "\n")
	}
	put(s.setup)
	if len(s.changes) > 0 {
		b.WriteString("-- changes\n")
		put(s.changes)
	}
	if len(s.settings) > 0 {
		b.WriteString("-- settings\n")
		put(s.settings)
	}
	if s.accelerated {
		b.WriteString("-- accelerated\n")
	}
	switch {
	case !s.p.extended:
		b.WriteString("-- ask simple\n")
	case s.p.prepared:
		fmt.Fprintf(&b, "-- ask prepared %s\n", formatList(s.p.formats))
	default:
		fmt.Fprintf(&b, "-- ask extended %s\n", formatList(s.p.formats))
	}
	for _, p := range s.bounds {
		v := "NULL"
		if p.value != nil {
			v = quote(*p.value)
		}
		fmt.Fprintf(&b, "-- with %s/%d\n", v, p.oid)
	}
	b.WriteString(s.sql + ";\n")
	return b.String()
}

func formatList(f []int16) string {
	var out []string
	for _, x := range f {
		out = append(out, strconv.Itoa(int(x)))
	}
	return "{" + strings.Join(out, ",") + "}"
}

// parseScript reads what String wrote.
func parseScript(text string) (*script, error) {
	s := &script{p: protocol{times: 1}}
	to := &s.setup
	var pending string
	asked := false
	for line := range strings.SplitSeq(text, "\n") {
		if comment, ok := strings.CutPrefix(line, "-- "); ok && pending == "" {
			word, rest, _ := strings.Cut(comment, " ")
			switch word {
			case "changes":
				to = &s.changes
			case "settings":
				to = &s.settings
			case "collation":
				s.collation = rest
			case "accelerated":
				s.accelerated = true
			case "ask":
				how, formats, _ := strings.Cut(rest, " ")
				s.p.extended, s.p.prepared = how != "simple", how == "prepared"
				for _, f := range strings.FieldsFunc(formats, func(r rune) bool { return strings.ContainsRune("{},", r) }) {
					n, err := strconv.ParseInt(f, 10, 16)
					if err != nil {
						return nil, err
					}
					s.p.formats = append(s.p.formats, int16(n))
				}
				asked = true
			case "with":
				at := strings.LastIndexByte(rest, '/')
				if at < 0 {
					return nil, fmt.Errorf("parameter %q", rest)
				}
				oid, err := strconv.ParseUint(rest[at+1:], 10, 32)
				if err != nil {
					return nil, err
				}
				p := bound{oid: uint32(oid)}
				if v := rest[:at]; v != "NULL" {
					v = strings.ReplaceAll(v[1:len(v)-1], "''", "'")
					p.value = &v
				}
				s.bounds = append(s.bounds, p)
			default:
				s.head = append(s.head, comment)
			}
			continue
		}
		if pending += line; !strings.HasSuffix(pending, ";") || strings.Count(pending, "'")%2 != 0 {
			if pending != "" {
				pending += "\n"
			}
			continue
		}
		stmt := strings.TrimSpace(strings.TrimSuffix(pending, ";"))
		pending = ""
		if asked {
			s.sql = stmt
		} else {
			*to = append(*to, stmt)
		}
	}
	if s.sql == "" {
		return nil, fmt.Errorf("no question, or it is not ended: %q", pending)
	}
	return s, nil
}

// play runs a script in a schema of its own, and compares.
func (st *stack) play(ctx context.Context, s *script, name string) (diff string, accelerated bool, err error) {
	direct, err := connect(ctx, st.direct)
	if err != nil {
		return "", false, err
	}
	defer direct.Close(ctx)
	proxy, err := connect(ctx, st.proxy)
	if err != nil {
		return "", false, err
	}
	defer proxy.Close(ctx)
	path := "SET search_path = " + name
	tables := 0
	run := func(list ...string) error {
		for _, q := range list {
			if a := direct.ask(ctx, q, nil, protocol{}); a.err != "" || a.lost != nil {
				return fmt.Errorf("%s %v in %s", a.err, a.lost, q)
			}
			if strings.HasPrefix(q, "CREATE TABLE") {
				tables++
			}
		}
		return nil
	}
	setup := append([]string{"BEGIN", "CREATE SCHEMA " + name, path}, s.setup...)
	if err := run(append(setup, "COMMIT")...); err != nil {
		return "", false, err
	}
	defer direct.ask(context.Background(), "DROP SCHEMA "+name+" CASCADE", nil, protocol{})
	if err := waitCopied(ctx, proxy, &schema{name: name, tables: make([]*table, tables)}); err != nil {
		return "", false, err
	}
	if err := run(s.changes...); err != nil {
		return "", false, err
	}
	t := &talk{direct: direct, proxy: proxy}
	if err := t.tell(ctx, append([]string{path}, s.settings...)...); err != nil {
		return "", false, err
	}
	before, err := st.counts()
	if err != nil {
		return "", false, err
	}
	q := &query{raw: s.sql, ordered: strings.Contains(s.sql, "ORDER BY")}
	want, got := direct.ask(ctx, s.sql, s.bounds, s.p), proxy.ask(ctx, s.sql, s.bounds, s.p)
	after, err := st.counts()
	return difference(q, want, got), err == nil && after[""]+after["partial"] > before[""]+before["partial"], err
}
