package integration

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/internal/pgserver"
	"pgaccel/internal/subprocess"
	"pgaccel/internal/tpcdata"
)

// program is the pgaccel binary, built once for all tests.
var program struct {
	once sync.Once
	dir  string
	path string
	err  error
}

func pgaccelProgram(t *testing.T) string {
	t.Helper()
	program.once.Do(func() {
		if program.dir, program.err = os.MkdirTemp("", "pgaccel-integration-"); program.err != nil {
			return
		}
		program.path = filepath.Join(program.dir, "pgaccel")
		if p := os.Getenv("PGACCEL_PROGRAM"); p != "" { // another build, such as a release
			program.path = p
			return
		}
		args := []string{"build", "-o", program.path}
		if os.Getenv("PGACCEL_RACE") != "" {
			args = append(args, "-race")
		}
		out, err := exec.Command("go", append(args, "pgaccel/cmd/pgaccel")...).CombinedOutput()
		if err != nil {
			program.err = fmt.Errorf("go build: %w\n%s", err, out)
		}
	})
	if program.err != nil {
		t.Fatal(program.err)
	}
	return program.path
}

// target is somewhere to connect to: the server, or pgaccel in front of it.
type target struct {
	name string
	port int
	db   string
}

// forceMode makes a session take whatever can be taken, so that the cost model
// decides nothing here.
const forceMode = "-c pgaccel.mode=force"

// url is a connection string; libpq's environment adds forceMode (see TestMain).
func (tg target) url(user string, options ...string) string {
	if !slices.ContainsFunc(options, func(o string) bool { return strings.HasPrefix(o, "&options=") }) {
		options = append(options, "&options=-c%20pgaccel.mode%3Dforce")
	}
	return fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s?sslmode=disable%s", user, tg.port, tg.db, strings.Join(options, ""))
}

// stack is a server with a pgaccel in front.
type stack struct {
	pg     *pgserver.Server
	direct target
	proxy  target
	http   string

	cmd    *exec.Cmd
	exited chan struct{}
	log    string
}

var shared struct {
	once sync.Once
	s    *stack
	err  error
}

// sharedStack is the server with all data that tests read and do not change.
func sharedStack(t *testing.T) *stack {
	t.Helper()
	bin := pgaccelProgram(t)
	shared.once.Do(func() { shared.s, shared.err = startStack(bin, starSchema+rightsSchema) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	select {
	case <-shared.s.exited:
		t.Fatalf("the pgaccel that tests share has ended: %v", shared.s.cmd.ProcessState)
	default:
	}
	return shared.s
}

func TestMain(m *testing.M) {
	os.Setenv("PGOPTIONS", forceMode)
	code := m.Run()
	if shared.s != nil {
		if bad := shared.s.stop(); bad != "" {
			fmt.Printf("FAIL: pgaccel's log:\n%s", bad)
			code = 1
		}
	}
	if program.dir != "" {
		os.RemoveAll(program.dir)
	}
	os.Exit(code)
}

// startStack starts a server, creates the schema, and starts pgaccel over all
// tables of schema public.
func startStack(bin, schema string, more ...string) (*stack, error) {
	return startStackIn("", bin, schema, more...)
}

// startStackIn is startStack in a locale of the C library, "" for C.
func startStackIn(locale, bin, schema string, more ...string) (*stack, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	pg, err := pgserver.Start(ctx, pgserver.Options{Locale: locale})
	if err != nil {
		return nil, err
	}
	s := &stack{pg: pg, direct: target{"direct", pg.Port, "postgres"}}
	err = func() error {
		conn, err := pgconn.Connect(ctx, s.direct.url("postgres"))
		if err != nil {
			return err
		}
		defer conn.Close(ctx)
		// One statement at a time: VACUUM stands alone, and bodies have no ";\n".
		for stmt := range strings.SplitSeq(strings.TrimSpace(schema), ";\n") {
			if _, err := conn.Exec(ctx, stmt).ReadAll(); err != nil {
				return fmt.Errorf("%w in %s", err, stmt)
			}
		}
		return s.serve(ctx, bin, more...)
	}()
	if err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// serve starts pgaccel and waits until every table is copied.
func (s *stack) serve(ctx context.Context, bin string, more ...string) error {
	ports, err := freePorts(2)
	if err != nil {
		return err
	}
	if err := s.begin(bin, ports, more...); err != nil {
		return err
	}
	return s.await(ctx)
}

// begin starts pgaccel on ports for clients and for HTTP.
func (s *stack) begin(bin string, ports []int, more ...string) error {
	return s.start(ports, exec.Command(bin, append([]string{"serve", "--upstream", s.pg.URL("postgres", s.direct.db), "--listen", fmt.Sprintf("127.0.0.1:%d", ports[0]),
		"--http", fmt.Sprintf("127.0.0.1:%d", ports[1]), "--accelerate", "public.*", "--trials=off", "--wait-limit=5s", "--drain-timeout=0", "--reuse-memory=0"}, more...)...))
}

// start starts the command that is a pgaccel on these ports.
func (s *stack) start(ports []int, cmd *exec.Cmd) error {
	s.proxy, s.http = target{"pgaccel", ports[0], s.direct.db}, fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	s.log = filepath.Join(s.pg.Dir, fmt.Sprintf("pgaccel-%d.log", ports[1]))
	log, err := os.Create(s.log)
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd = cmd
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.Env = slices.DeleteFunc(append(os.Environ(), cmd.Env...), func(v string) bool { return strings.HasPrefix(v, "PGOPTIONS=") })
	if err := subprocess.Start(s.cmd, syscall.SIGKILL); err != nil {
		return err
	}
	s.exited = make(chan struct{})
	go func() { s.cmd.Wait(); close(s.exited) }()
	return nil
}

// await waits until every table is copied.
func (s *stack) await(ctx context.Context) error {
	for {
		if r, err := web.Get(s.http + "/readyz?tables"); err == nil {
			r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-s.exited:
			text, _ := os.ReadFile(s.log)
			return fmt.Errorf("pgaccel ended at start:\n%s", text)
		case <-ctx.Done():
			text, _ := os.ReadFile(s.log)
			return fmt.Errorf("pgaccel was not ready in time: %w\n%s", ctx.Err(), text)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// stop ends both and returns what pgaccel logged and should not have: errors of its
// own, panics, data races (PGACCEL_RACE builds it with the detector).
func (s *stack) stop() (bad string) {
	if s.cmd != nil && s.cmd.Process != nil {
		s.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-s.exited:
		case <-time.After(10 * time.Second):
			s.cmd.Process.Kill()
			<-s.exited
		}
	}
	bad = s.faults()
	if s.pg != nil {
		s.pg.Stop()
	}
	return bad
}

// faults returns what is in pgaccel's log and should not be.
func (s *stack) faults() (bad string) {
	if s.log == "" {
		return ""
	}
	text, _ := os.ReadFile(s.log)
	if at := bytes.Index(text, []byte("WARNING: DATA RACE")); at >= 0 {
		bad += string(text[at:min(len(text), at+5000)])
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "level=ERROR") || strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") {
			bad += line
		}
	}
	return bad
}

// privateStack is a stack for one test.
func privateStack(t *testing.T, schema string, more ...string) *stack {
	t.Helper()
	s, err := startStack(pgaccelProgram(t), schema, more...)
	if err != nil {
		t.Fatal(err)
	}
	s.stopAtEnd(t)
	return s
}

// generatedStack is a stack over a benchmark's tables, with a session at the server and one through
// pgaccel, whose mode is force. settings are the server's.
func generatedStack(t *testing.T, tables tpcdata.Source, scale float64, settings map[string]string) (s *stack, direct, proxy *pgconn.PgConn) {
	t.Helper()
	pg, err := pgserver.Start(t.Context(), pgserver.Options{Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	s = &stack{pg: pg, direct: target{"direct", pg.Port, "postgres"}}
	s.stopAtEnd(t)
	if err := tables.Load(t.Context(), s.direct.url("postgres"), scale, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.serve(t.Context(), pgaccelProgram(t)); err != nil {
		t.Fatal(err)
	}
	direct, proxy = connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	if _, err := proxy.Exec(t.Context(), "SET pgaccel.mode = 'force'").ReadAll(); err != nil {
		t.Fatal(err)
	}
	return s, direct, proxy
}

// stopAtEnd stops it when the test ends, which fails where its log has what it must not.
func (s *stack) stopAtEnd(t *testing.T) {
	t.Cleanup(func() {
		if bad := s.stop(); bad != "" {
			t.Errorf("pgaccel's log:\n%s", bad)
		}
	})
}

func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// queries returns the counter of executions with the route.
func (s *stack) queries(t testing.TB, route string) int {
	t.Helper()
	n := 0
	for line := range s.metrics(t) {
		if strings.Contains(line, `route="`+route+`"`) {
			v, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
			if err != nil {
				t.Fatal(line, err)
			}
			n += int(v)
		}
	}
	return n
}

// metrics returns the lines of pgaccel_queries_total.
func (s *stack) metrics(t testing.TB) map[string]bool {
	t.Helper()
	lines := map[string]bool{}
	for _, line := range s.scrape(t) {
		if strings.HasPrefix(line, "pgaccel_queries_total{") {
			lines[line] = true
		}
	}
	return lines
}

// web does not wait for a pgaccel that does not answer.
var web = http.Client{Timeout: 30 * time.Second}

// scrape returns the lines of /metrics.
func (s *stack) scrape(t testing.TB) (lines []string) {
	t.Helper()
	r, err := web.Get(s.http + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	scan := bufio.NewScanner(r.Body)
	for scan.Scan() {
		lines = append(lines, scan.Text())
	}
	return lines
}

// accelerates runs f and asserts that it raised the count of accelerated
// executions by least at least.
func (s *stack) accelerates(t *testing.T, least int, f func()) {
	t.Helper()
	s.takes(t, "accelerated", least, f)
}

// inPart is accelerates for executions of which the server runs a part over rows from pgaccel.
func (s *stack) inPart(t *testing.T, least int, f func()) {
	t.Helper()
	s.takes(t, "partial", least, f)
}

// takes runs f and asserts that it raised the count of executions on a route by least at least.
func (s *stack) takes(t *testing.T, route string, least int, f func()) {
	t.Helper()
	before, reasons := s.queries(t, route), s.metrics(t)
	log, _ := os.ReadFile(s.log)
	f()
	if got := s.queries(t, route) - before; got < least {
		t.Errorf("%d executions were %s, want at least %d; changed counters:", got, route, least)
		for line := range s.metrics(t) {
			if !reasons[line] {
				t.Log(line)
			}
		}
		if now, _ := os.ReadFile(s.log); len(now) > len(log) {
			t.Logf("pgaccel's log:\n%s", now[len(log):min(len(now), len(log)+3000)])
		}
	}
}

// forwardsAll runs f and asserts that nothing was accelerated; in part it may be.
func (s *stack) forwardsAll(t *testing.T, f func()) {
	t.Helper()
	before := s.queries(t, "accelerated")
	f()
	if got := s.queries(t, "accelerated") - before; got != 0 {
		t.Errorf("%d executions were accelerated, want none", got)
	}
}

// both runs f on the server and through pgaccel and asserts equal answers.
func (s *stack) both(t *testing.T, f func(target) []byte) {
	t.Helper()
	want, got := f(s.direct), f(s.proxy)
	if len(want) == 0 {
		t.Error("no output at all")
	}
	if !bytes.Equal(got, want) {
		t.Errorf("pgaccel differs from the server%s", firstDifference(got, want))
	}
}

func firstDifference(got, want []byte) string {
	g, w := bytes.Split(got, []byte("\n")), bytes.Split(want, []byte("\n"))
	for i := range max(len(g), len(w)) {
		if i >= len(g) {
			return fmt.Sprintf(" in line %d: missing: %q", i+1, w[i])
		}
		if i >= len(w) {
			return fmt.Sprintf(" in line %d: surplus: %q", i+1, g[i])
		}
		if !bytes.Equal(g[i], w[i]) {
			return fmt.Sprintf(" in line %d:\n got: %q\nwant: %q", i+1, g[i], w[i])
		}
	}
	return ""
}

// need fails the test where a program is missing, with the line that installs it.
func need(t *testing.T, program, install string) string {
	t.Helper()
	p, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("%s is missing: %s (or integration/install-clients.sh)", program, install)
	}
	return p
}

// run runs a client program and returns its standard output; failure includes the
// rest.
func run(t *testing.T, env []string, stdin io.Reader, name string, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Stdin = append(os.Environ(), env...), stdin
	cmd.WaitDelay = 5 * time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s%s", filepath.Base(name), strings.Join(args, " "), err, out.Bytes(), errs.Bytes())
	}
	return out.Bytes()
}

// connect opens a plain protocol connection that the test closes at its end.
func connect(t testing.TB, url string) *pgconn.PgConn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	conn, err := pgconn.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// answer is everything a client sees of one statement.
type answer struct {
	fields string
	rows   []string
	tag    string
	err    string
	code   string // of the error; empty for one that is not the server's
}

func (a answer) String() string {
	return fmt.Sprintf("%s\n%s\n%s %s", a.fields, strings.Join(a.rows, "\n"), a.tag, a.err)
}

// ask runs one statement: simple protocol where format is nil, else extended with
// the result formats and parameters in text.
func ask(t testing.TB, conn *pgconn.PgConn, sql string, format []int16, params ...string) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var a answer
	if format == nil {
		m := conn.Exec(ctx, sql)
		for m.NextResult() {
			a.read(m.ResultReader())
		}
		a.note(m.Close())
		return a
	}
	var values [][]byte
	for _, p := range params {
		values = append(values, []byte(p))
	}
	a.read(conn.ExecParams(ctx, sql, values, nil, nil, format))
	return a
}

// read adds what a result brings.
func (a *answer) read(r *pgconn.ResultReader) {
	for _, f := range r.FieldDescriptions() {
		a.fields += fmt.Sprintf("%s/%d/%d/%d/%d/%d/%d ", f.Name, f.TableOID, f.TableAttributeNumber, f.DataTypeOID, f.DataTypeSize, f.TypeModifier, f.Format)
	}
	for r.NextRow() {
		var b strings.Builder
		for _, v := range r.Values() {
			if v == nil {
				b.WriteString("NULL|")
			} else {
				fmt.Fprintf(&b, "%q|", v)
			}
		}
		a.rows = append(a.rows, b.String())
	}
	tag, err := r.Close()
	a.tag = tag.String()
	a.note(err)
}

// note keeps an error as the client sees it, without the fields that name the
// server's source.
func (a *answer) note(err error) {
	if err == nil || a.err != "" {
		return
	}
	if pg, ok := err.(*pgconn.PgError); ok {
		a.code = pg.Code
		a.err = fmt.Sprintf("%s %s %s | %s | %s | at %d %s %d", pg.Severity, pg.Code, pg.Message, pg.Detail, pg.Hint, pg.Position, pg.Routine, pg.Line)
		return
	}
	a.err = err.Error()
}
