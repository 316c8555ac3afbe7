package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"pgaccel/internal/pgserver"
	"pgaccel/internal/subprocess"
)

// child is a pgaccel serve that we started.
type child struct {
	Addr, HTTP string        // host:port of the listeners
	FirstCopy  time.Duration // from the start of the process until /readyz said yes

	cmd    *exec.Cmd
	exited chan struct{} // closed when the process has ended
	log    string        // file of its standard error
}

// startChild starts `binary serve` in front of upstream and waits until every table is
// copied. rows, where not nil, is told the number of rows copied so far. environment is in addition to this process' own.
func startChild(ctx context.Context, binary, upstream, dir, listen, http string, args []string, rows func(int64), environment ...string) (*child, error) {
	c := &child{exited: make(chan struct{}), log: filepath.Join(dir, "pgaccel.log")}
	var err error
	if c.Addr, err = freeAddress(listen); err != nil {
		return nil, err
	}
	if c.HTTP, err = freeAddress(http); err != nil {
		return nil, err
	}
	log, err := os.Create(c.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	c.cmd = exec.Command(binary, append([]string{"serve", "--upstream", upstream, "--listen", c.Addr, "--http", c.HTTP, "--accelerate", "public.*", "--trials=off"}, args...)...)
	c.cmd.Stdout, c.cmd.Stderr = log, log
	// The environment's settings, and where it has spans sent, are meant for another pgaccel. What is timed is computed each time: a variable,
	// since the program of --base may not have the flag.
	c.cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PGACCEL_") || strings.HasPrefix(v, "OTEL_") }), "PGACCEL_REUSE_MEMORY=0")
	c.cmd.Env = append(c.cmd.Env, environment...)
	// It ends with us even when we are killed, and not by the terminal's Ctrl-C, so
	// that it can still say good-bye to Postgres.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	start := time.Now()
	if err := subprocess.Start(c.cmd, syscall.SIGKILL); err != nil {
		return nil, fmt.Errorf("starting %s: %w", binary, err)
	}
	go func() { c.cmd.Wait(); close(c.exited) }()
	if err := c.waitReady(ctx, rows); err != nil {
		c.stop()
		return nil, err
	}
	c.FirstCopy = time.Since(start)
	return c, nil
}

// freeAddress returns want where nobody listens there, else one of its host with a free
// port.
func freeAddress(want string) (string, error) {
	host, _, err := net.SplitHostPort(want)
	if err != nil {
		return "", err
	}
	l, err := net.Listen("tcp", want)
	if err != nil {
		if l, err = net.Listen("tcp", net.JoinHostPort(host, "0")); err != nil {
			return "", err
		}
	}
	defer l.Close()
	return l.Addr().String(), nil
}

func (c *child) waitReady(ctx context.Context, rows func(int64)) error {
	for last := time.Now(); ; {
		// Often, because what is timed ends here.
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.exited:
			return fmt.Errorf("pgaccel ended at start:\n%s", c.tail())
		case <-time.After(10 * time.Millisecond):
		}
		if status, _, err := c.get(ctx, "/readyz?tables"); err == nil && status == http.StatusOK {
			return nil
		}
		if rows != nil && time.Since(last) > 500*time.Millisecond {
			last = time.Now()
			if m, err := c.metrics(ctx); err == nil {
				rows(int64(m.sum("pgaccel_table_rows")))
			}
		}
	}
}

func (c *child) get(ctx context.Context, path string) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.HTTP+path, nil)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Accept-Encoding", "identity") // compressing would be work beside what is measured
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

// metric is one line of /metrics, or one histogram.
type metric struct {
	name    string
	labels  map[string]string
	value   float64
	buckets []bucket // of a histogram, ascending
}

// bucket counts the observations up to le, those of lower buckets included.
type bucket struct{ le, n float64 }

type metrics []metric

func (m metrics) sum(name string) (sum float64) {
	for _, s := range m {
		if s.name == name {
			sum += s.value
		}
	}
	return sum
}

// get returns the first metric of a name; there is false where pgaccel has none.
func (m metrics) get(name string) (one metric, there bool) {
	for _, s := range m {
		if s.name == name {
			return s, true
		}
	}
	return metric{}, false
}

// routes are the executions so far: accelerated, and forwarded by reason.
func (m metrics) routes() (accelerated int64, forwarded map[string]int64) {
	forwarded = map[string]int64{}
	for _, s := range m {
		if s.name != "pgaccel_queries_total" {
			continue
		}
		if s.labels["route"] != "forwarded" {
			accelerated += int64(s.value)
		} else {
			forwarded[s.labels["reason"]] += int64(s.value)
		}
	}
	return accelerated, forwarded
}

func (c *child) metrics(ctx context.Context) (metrics, error) {
	status, body, err := c.get(ctx, "/metrics")
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("/metrics: status %d: %s", status, body)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("/metrics: %w", err)
	}
	var all metrics
	for name, family := range families {
		for _, m := range family.GetMetric() {
			one := metric{name: name, labels: map[string]string{}}
			for _, l := range m.GetLabel() {
				one.labels[l.GetName()] = l.GetValue()
			}
			switch {
			case m.Counter != nil:
				one.value = m.Counter.GetValue()
			case m.Gauge != nil:
				one.value = m.Gauge.GetValue()
			case m.Histogram != nil:
				for _, b := range m.Histogram.GetBucket() {
					one.buckets = append(one.buckets, bucket{b.GetUpperBound(), float64(b.GetCumulativeCount())})
				}
				one.value = float64(m.Histogram.GetSampleCount())
			default:
				continue
			}
			all = append(all, one)
		}
	}
	return all, nil
}

// checkTables is an error unless each of the tables answers queries.
func (c *child) checkTables(ctx context.Context, tables []string) error {
	m, err := c.metrics(ctx)
	if err != nil {
		return err
	}
	states := map[string]string{}
	for _, s := range m {
		if s.name == "pgaccel_table_ready" {
			name := s.labels["table"]
			if s.value != 1 {
				states[name[strings.LastIndexByte(name, '.')+1:]] = s.labels["state"]
			} else {
				states[name[strings.LastIndexByte(name, '.')+1:]] = ""
			}
		}
	}
	var errs []error
	for _, t := range tables {
		if state, known := states[t]; !known {
			errs = append(errs, fmt.Errorf("pgaccel has no copy of %s", t))
		} else if state != "" {
			errs = append(errs, fmt.Errorf("pgaccel's copy of %s is %s", t, state))
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("%w\n%s", errors.Join(errs...), c.tail())
	}
	return nil
}

// residentBytes is the memory of the process that is not shared with others, peak first:
// VmHWM and VmRSS of /proc.
func (c *child) residentBytes() (peak, now int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(text)) {
		var kb int64
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kb); err == nil {
			peak = kb << 10
		} else if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kb); err == nil {
			now = kb << 10
		}
	}
	return peak, now
}

// tail is the end of the child's log.
func (c *child) tail() string {
	text, _ := os.ReadFile(c.log)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}

// complaints are the warnings and errors in the child's log: at most three, of those that
// begin alike (stack traces differ in their addresses) the first.
func (c *child) complaints() []string {
	text, _ := os.ReadFile(c.log)
	var found []string
	seen := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		_, said, bad := strings.Cut(strings.TrimSpace(line), " level=")
		if bad = bad && (strings.HasPrefix(said, "WARN") || strings.HasPrefix(said, "ERROR")); bad && !seen[said[:min(len(said), 120)]] && len(found) < 3 {
			seen[said[:min(len(said), 120)]] = true
			found = append(found, strings.NewReplacer(`\n`, "\n    ", `\t`, "  ").Replace(said))
		}
	}
	return found
}

// goroutines ends the process and returns what its goroutines were at: our functions of each, innermost first, and
// how many are there.
func (c *child) goroutines() string {
	before, _ := os.ReadFile(c.log)
	c.cmd.Process.Signal(syscall.SIGQUIT)
	<-c.exited
	text, _ := os.ReadFile(c.log)
	places := map[string]int{}
	for goroutine := range strings.SplitSeq(string(text[len(before):]), "\n\n") {
		var ours []string
		for line := range strings.Lines(goroutine) {
			if arguments := strings.LastIndexByte(line, '('); arguments > 0 && strings.HasPrefix(line, "pgaccel/") {
				ours = append(ours, line[len("pgaccel/"):arguments])
			}
		}
		if head, _, is := strings.Cut(goroutine, "\n"); is && len(ours) > 0 {
			_, state, _ := strings.Cut(head, "[")
			places[strings.TrimSuffix(state, "]:")+": "+strings.Join(ours, " < ")]++
		}
	}
	var b strings.Builder
	for _, at := range slices.Sorted(maps.Keys(places)) {
		fmt.Fprintf(&b, "%d %s\n", places[at], at)
	}
	return b.String()
}

// stop ends the process, gently at first.
func (c *child) stop() {
	c.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-c.exited:
	case <-time.After(10 * time.Second):
		c.cmd.Process.Kill()
		<-c.exited
	}
}

// stopBoth stops a pgaccel and the server behind it, those of them that have been started.
func stopBoth(c *child, server *pgserver.Server) {
	if c != nil {
		c.stop()
	}
	if server != nil {
		server.Stop()
	}
}
