package referee

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// session is a connection to the server or to pgaccel.
type session struct {
	*pgconn.PgConn
	notices []string
}

func connect(ctx context.Context, url string) (*session, error) {
	s := &session{}
	cfg, err := pgconn.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	cfg.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		s.notices = append(s.notices, n.Severity+" "+n.Code+" "+n.Message)
	}
	s.PgConn, err = pgconn.ConnectConfig(ctx, cfg)
	return s, err
}

// protocol is how a question is put.
type protocol struct {
	extended bool
	prepared bool    // as a named statement
	formats  []int16 // of results
	binary   bool    // parameters, where the generator can
	times    int     // executions of a named statement
	copy     bool    // as a COPY (SELECT) TO STDOUT
	// oids are the types that parameters are declared as, where not as their constants say.
	oids []uint32
}

// text returns the question's text and parameters.
func (p protocol) text(q *query) (string, []bound) {
	sql, bounds := q.sql(p.extended)
	for i := range bounds {
		if i < len(p.oids) {
			bounds[i].oid = p.oids[i]
		}
	}
	return sql, bounds
}

func randomProtocol(r *rand.Rand, columns int) protocol {
	p := protocol{times: 1}
	switch r.IntN(10) {
	case 0, 1:
		return p
	case 2:
		p.copy = true
		return p
	case 3, 4:
		p.prepared = true
		p.times = 1 + r.IntN(2)
	}
	p.extended = true
	switch r.IntN(6) {
	case 0, 1:
	case 2:
		p.formats = []int16{0}
	case 3:
		for range columns {
			p.formats = append(p.formats, int16(r.IntN(2)))
		}
	default:
		p.formats = []int16{1}
	}
	p.binary = r.IntN(3) == 0
	return p
}

func (p protocol) String() string {
	switch {
	case p.copy:
		return "COPY"
	case !p.extended:
		return "simple"
	case p.prepared:
		return fmt.Sprintf("prepared, results %v", p.formats)
	}
	return fmt.Sprintf("extended, results %v", p.formats)
}

// answer is everything that a client sees of one statement.
type answer struct {
	fields  []pgconn.FieldDescription
	rows    [][][]byte
	tag     string
	err     string
	notices []string
	lost    error // of the connection
}

// writeStacks writes the stacks of all goroutines to a file, pgaccel's among them, which runs in this process: what
// one that has not answered in time waits for.
func writeStacks() string {
	f, err := os.CreateTemp("", "referee-*.stacks")
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	b := make([]byte, 16<<20)
	if _, err := f.Write(b[:runtime.Stack(b, true)]); err != nil {
		return err.Error()
	}
	return f.Name()
}

// text is the rows and the error, for messages.
func (a *answer) text() string {
	var b strings.Builder
	for _, r := range a.rows {
		fmt.Fprintf(&b, "%s; ", bytes.Join(r, []byte(", ")))
	}
	return b.String() + a.err
}

// ask puts one question.
func (s *session) ask(ctx context.Context, sql string, bounds []bound, p protocol) answer {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var a answer
	s.notices = nil
	read := func(r *pgconn.ResultReader) {
		a.fields = slices.Clone(r.FieldDescriptions())
		for r.NextRow() {
			row := make([][]byte, len(r.Values()))
			for i, v := range r.Values() {
				if v != nil {
					row[i] = append([]byte{}, v...)
				}
			}
			a.rows = append(a.rows, row)
		}
		tag, err := r.Close()
		a.tag = tag.String()
		a.note(err)
	}
	if p.copy {
		s.copy(ctx, sql, &a)
		a.notices = s.notices
		return a
	}
	if !p.extended {
		m := s.Exec(ctx, sql)
		for m.NextResult() {
			read(m.ResultReader())
		}
		a.note(m.Close())
		a.notices = s.notices
		return a
	}
	var values [][]byte
	var oids []uint32
	var formats []int16
	for _, b := range bounds {
		v, f := encode(b, p.binary)
		values, oids, formats = append(values, v), append(oids, b.oid), append(formats, f)
	}
	if p.prepared {
		if _, err := s.Prepare(ctx, "s", sql, oids); err != nil {
			a.note(err)
		} else {
			for range p.times {
				a.rows = nil
				read(s.ExecPrepared(ctx, "s", values, formats, p.formats))
			}
			if !s.IsClosed() {
				s.Deallocate(ctx, "s")
			}
		}
	} else {
		read(s.ExecParams(ctx, sql, values, oids, formats, p.formats))
	}
	a.notices = s.notices
	return a
}

// note keeps an error as the client sees it.
func (a *answer) note(err error) {
	if err == nil || a.err != "" || a.lost != nil {
		return
	}
	var e *pgconn.PgError
	if errors.As(err, &e) {
		a.err = fmt.Sprintf("%s %s: %s | %s | %s | at %d in %s", e.Severity, e.Code, e.Message, e.Detail, e.Hint, e.Position, e.Where)
		return
	}
	a.lost = err
	if errors.Is(err, context.DeadlineExceeded) {
		a.lost = fmt.Errorf("%w, stacks in %s", err, writeStacks())
	}
}

// encode returns a parameter's value and its format.
func encode(b bound, asBinary bool) ([]byte, int16) {
	if b.value == nil {
		return nil, 0
	}
	s := *b.value
	if asBinary && (b.oid != 0 || b.kind == text) {
		switch b.kind {
		case int2, int4, int8:
			if n, err := strconv.ParseInt(s, 10, 64); err == nil {
				switch b.kind {
				case int2:
					return binary.BigEndian.AppendUint16(nil, uint16(n)), 1
				case int4:
					return binary.BigEndian.AppendUint32(nil, uint32(n)), 1
				}
				return binary.BigEndian.AppendUint64(nil, uint64(n)), 1
			}
		case boolean:
			return []byte{map[string]byte{"t": 1}[s]}, 1
		case float8:
			if f, err := strconv.ParseFloat(s, 64); err == nil {
				return binary.BigEndian.AppendUint64(nil, math.Float64bits(f)), 1
			}
		case text:
			return []byte(s), 1
		case date:
			if d, err := time.Parse(time.DateOnly, s); err == nil {
				return binary.BigEndian.AppendUint32(nil, uint32(int32(d.Unix()/86400-10957))), 1
			}
		default:
			if t := b.kind.entry(); b.kind.isOther() {
				if t.ParseWord == nil {
					if d, ok := t.Parse(s); ok {
						return []byte(d.Str), 1
					}
				} else if v, ok := t.ParseWord(s); ok {
					return t.AppendBinary(nil, v), 1
				}
			}
		}
	}
	return []byte(s), 0
}

// difference says in what got differs from want, "" where it does not.
func difference(q *query, want, got answer) string {
	switch {
	case want.lost != nil || got.lost != nil:
		return fmt.Sprintf("connection: %v, want %v", got.lost, want.lost)
	case q.undetermined() || q.loose():
		return ""
	case want.err != got.err:
		return fmt.Sprintf("error %q, want %q", got.err, want.err)
	case want.tag != got.tag:
		return fmt.Sprintf("tag %q, want %q%s", got.tag, want.tag, lacking(want, got))
	case !slices.Equal(want.notices, got.notices):
		return fmt.Sprintf("notices %q, want %q", got.notices, want.notices)
	case !slices.Equal(want.fields, got.fields):
		return fmt.Sprintf("columns %+v, want %+v", got.fields, want.fields)
	case len(want.rows) != len(got.rows):
		return fmt.Sprintf("%d rows, want %d", len(got.rows), len(want.rows))
	}
	keys, total := q.sortedColumns()
	if q.cuts() && !total && (len(keys) == 0 || len(keys) < len(q.order)) {
		return "" // any rows are right
	}
	for i := range want.rows {
		for _, k := range keys {
			w, wantExact := canonical(want.fields[k], want.rows[i][k])
			g, gotExact := canonical(want.fields[k], got.rows[i][k])
			exact := wantExact && gotExact
			if w != g && exact && !(q.ties && equated(w) == equated(g)) {
				return fmt.Sprintf("row %d: %s where %s sorts", i+1, show(got.rows[i]), show(want.rows[i]))
			}
			if !exact {
				break
			}
		}
	}
	if q.cuts() && !total {
		return ""
	}
	if noise := q.noise(); noise != nil {
		return q.roughly(noise, want, got)
	}
	w, g := shown(want.rows), shown(got.rows)
	if !q.ordered {
		slices.Sort(w)
		slices.Sort(g)
	}
	for i := range w {
		if w[i] != g[i] {
			return fmt.Sprintf("row %s, want %s", g[i], w[i])
		}
	}
	return ""
}

// lacking shows a few rows that one answer has and the other has not.
func lacking(want, got answer) string {
	only := func(a, b []string) (out []string) {
		left := map[string]int{}
		for _, r := range b {
			left[r]++
		}
		for _, r := range a {
			if left[r]--; left[r] < 0 && len(out) < 3 {
				out = append(out, r)
			}
		}
		return out
	}
	w, g := shown(want.rows), shown(got.rows)
	return fmt.Sprintf("; not wanted %v, wanted %v", only(g, w), only(w, g))
}

// equated returns what the words of text, which the collation of loose columns takes as equal, have in common.
func equated(s string) string { return equal.Replace(strings.ToLower(s)) }

var equal = strings.NewReplacer("ß", "ss", "e\u0301", "é", "\u00a0", " ", "\u200b", "", "\x01", "")

// canonical returns a form that is equal for values that sort as one: 0 and -0, 1.0
// and 1.00. exact is false where there is none.
func canonical(f pgconn.FieldDescription, v []byte) (s string, exact bool) {
	s = string(v)
	if v == nil {
		return "NULL", true
	}
	switch f.DataTypeOID {
	case numeric.oid(), float4.oid(), float8.oid():
		if f.Format != 0 {
			return s, false
		}
		if f.DataTypeOID == numeric.oid() && strings.Contains(s, ".") {
			s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
		}
		if s == "-0" {
			s = "0"
		}
	case jsonb.oid(): // numbers in it have scales of their own
		return s, !strings.Contains(s, ".")
	case char.oid():
		s = strings.TrimRight(s, " ")
	}
	return "=" + s, true
}

func show(row [][]byte) string {
	var b strings.Builder
	for i, v := range row {
		if i > 0 {
			b.WriteByte('|')
		}
		if v == nil {
			b.WriteString("NULL")
		} else {
			fmt.Fprintf(&b, "%q", v)
		}
	}
	return b.String()
}

func shown(rows [][][]byte) []string {
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = show(r)
	}
	return out
}
