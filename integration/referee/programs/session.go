package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// route is the way a session takes to the server.
type route int

const (
	direct route = iota
	through
)

// String names the route in histories.
func (r route) String() string {
	return [...]string{"direct", "pgaccel"}[r]
}

// statementLimit is when a statement counts as lost. Commits wait 2 s for a standby
// that does not exist, and servers are restarted.
const statementLimit = 40 * time.Second

// errLost wraps errors after which nobody knows what became of the statement: the
// connection is gone, and with it the transaction, unless the statement ended it.
type errLost struct{ err error }

// Error implements error.
func (e errLost) Error() string { return "lost: " + e.err.Error() }

// Unwrap gives the connection's error.
func (e errLost) Unwrap() error { return e.err }

func isLost(err error) bool {
	var lost errLost
	return errors.As(err, &lost)
}

// sqlState is the code of a server's error, "" for any other.
func sqlState(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// answer is what a client sees of a statement: values in text format, "\N" for null.
type answer struct {
	rows [][]string
	tag  string
}

// String prints the answer for comparisons and histories.
func (a answer) String() string {
	var b strings.Builder
	for i, row := range a.rows {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(strings.Join(row, "|"))
	}
	b.WriteString(" " + a.tag)
	return b.String()
}

// int returns a value as a number; null and nonsense are -1, which no program
// stores.
func (a answer) int(row, column int) int64 {
	if row >= len(a.rows) || column >= len(a.rows[row]) {
		return -1
	}
	n, err := strconv.ParseInt(a.rows[row][column], 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// session is a client of the server. It connects when it is first used, and again
// after the connection was lost. It belongs to one goroutine.
type session struct {
	w        *world
	name     string // application_name; unique
	via      route
	rand     *rand.Rand
	settings []string // statements run after each connect
	epoch    int64    // of the server when the current operation began, see begin
	conn     *pgconn.PgConn
	prepared map[string]string
	protocol int                    // of the next statements; -1 is any
	notes    []*pgconn.Notification // received and not yet taken
}

// session makes a session; settings are statements to run after each connect.
func (w *world) session(name string, via route, settings ...string) *session {
	return &session{w: w, name: fmt.Sprintf("%s-%d", name, w.sessions.Add(1)), via: via, rand: w.random(name), settings: settings, epoch: w.epoch.Load(), protocol: -1}
}

// begin says that an operation begins: statements up to the next begin belong to
// the server as it is now. Should it crash in between, they fail.
func (s *session) begin() { s.epoch = s.w.epoch.Load() }

func (s *session) connect(ctx context.Context) error {
	if s.w.epoch.Load() != s.epoch {
		return errors.New("the server has crashed")
	}
	config, err := pgconn.ParseConfig(s.w.url(s.via) + "&application_name=" + s.name)
	if err != nil {
		return err
	}
	s.notes = nil
	config.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) { s.notes = append(s.notes, n) }
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	for _, sql := range s.settings {
		if _, err := conn.Exec(ctx, sql).ReadAll(); err != nil {
			conn.Close(ctx)
			return err
		}
	}
	if s.w.epoch.Load() != s.epoch {
		conn.Close(ctx)
		return errors.New("the server has crashed")
	}
	s.conn, s.prepared = conn, map[string]string{}
	return nil
}

// protocols is how many ways there are to send a statement: a simple Query, the
// unnamed prepared statement, and a named one.
const protocols = 3

// do runs one statement by a protocol chosen at random. An error is the server's
// (sqlState) or an errLost.
func (s *session) do(sql string, args ...any) (answer, error) {
	start := time.Now()
	a, err := s.run(sql, args)
	s.w.history.add(event{start, time.Now(), s.name + " " + s.via.String(), sql, args, a, err})
	return a, err
}

func (s *session) run(sql string, args []any) (answer, error) {
	if s.w.lie != nil && s.via == through {
		if a, ok := s.w.lie(s, sql, args); ok {
			return a, nil
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), statementLimit)
	defer cancel()
	if s.conn == nil {
		if err := s.connect(ctx); err != nil {
			return answer{}, errLost{err}
		}
	}
	a, err := s.send(ctx, sql, args)
	if err != nil && (s.conn.IsClosed() || sqlState(err) == "" || ctx.Err() != nil) {
		s.close()
		err = errLost{err}
	}
	return a, err
}

func (s *session) send(ctx context.Context, sql string, args []any) (answer, error) {
	protocol := s.protocol
	if protocol < 0 {
		protocol = s.rand.IntN(protocols)
	}
	if len(args) == 0 && (protocol == 0 || !preparable(sql)) {
		return s.simple(ctx, sql)
	}
	values := make([][]byte, len(args))
	for i, arg := range args {
		values[i] = fmt.Append(nil, arg)
	}
	switch protocol {
	case 0:
		for i := len(args); i >= 1; i-- {
			sql = strings.ReplaceAll(sql, "$"+strconv.Itoa(i), literal(args[i-1]))
		}
		return s.simple(ctx, sql)
	case 1:
		return read(s.conn.ExecParams(ctx, sql, values, nil, nil, nil))
	}
	name, ok := s.prepared[sql]
	if !ok {
		name = "p" + strconv.Itoa(len(s.prepared))
		if _, err := s.conn.Prepare(ctx, name, sql, nil); err != nil {
			return answer{}, err
		}
		s.prepared[sql] = name
	}
	return read(s.conn.ExecPrepared(ctx, name, values, nil, nil))
}

// preparable reports whether the extended protocol is worth a try: not for several
// statements, nor for schema changes, after which plans are of other types.
func preparable(sql string) bool {
	return strings.HasPrefix(sql, "SELECT") && !strings.Contains(sql, ";")
}

func (s *session) simple(ctx context.Context, sql string) (answer, error) {
	var a answer
	results := s.conn.Exec(ctx, sql)
	for results.NextResult() {
		one, err := read(results.ResultReader())
		if err != nil {
			results.Close()
			return a, err
		}
		a.rows, a.tag = append(a.rows, one.rows...), one.tag
	}
	return a, results.Close()
}

func read(r *pgconn.ResultReader) (answer, error) {
	var a answer
	for r.NextRow() {
		row := make([]string, len(r.Values()))
		for i, v := range r.Values() {
			row[i] = string(v)
			if v == nil {
				row[i] = `\N`
			}
		}
		a.rows = append(a.rows, row)
	}
	tag, err := r.Close()
	a.tag = tag.String()
	return a, err
}

func literal(v any) string {
	if text, ok := v.(string); ok {
		return "'" + strings.ReplaceAll(text, "'", "''") + "'"
	}
	return fmt.Sprint(v)
}

// all runs statements until one fails.
func (s *session) all(statements ...string) error {
	for _, sql := range statements {
		if _, err := s.do(sql); err != nil {
			return err
		}
	}
	return nil
}

// copyIn runs COPY ... FROM STDIN with the text.
func (s *session) copyIn(sql, text string) error {
	start := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), statementLimit)
	defer cancel()
	err := func() error {
		if s.conn == nil {
			if err := s.connect(ctx); err != nil {
				return errLost{err}
			}
		}
		_, err := s.conn.CopyFrom(ctx, strings.NewReader(text), sql)
		if err != nil && (s.conn.IsClosed() || sqlState(err) == "") {
			s.close()
			err = errLost{err}
		}
		return err
	}()
	s.w.history.add(event{start, time.Now(), s.name + " " + s.via.String(), sql, []any{text}, answer{}, err})
	return err
}

// rollback leaves a transaction after an error. A lost connection has left it.
func (s *session) rollback() {
	if s.conn != nil {
		s.do("ROLLBACK")
	}
}

func (s *session) close() {
	if s.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s.conn.Close(ctx)
	s.conn = nil
}
