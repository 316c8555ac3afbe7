package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"pgaccel/internal/pgserver"
	"pgaccel/internal/subprocess"
)

// world is what a program runs in: a server, pgaccel in front of it, the link
// between the two, and what is known of the run so far.
type world struct {
	seed    uint64
	serve   []string // more flags for pgaccel
	data    string   // pgaccel's data directory, with which it leaves its slot and publication; "" for none
	binary  string   // of pgaccel; "" for none: then all sessions are direct
	dir     string
	disk    string // a small file system that holds the server's data, "" for none
	history *history
	link    *link
	lie     func(s *session, sql string, args []any) (answer, bool) // a broken pgaccel, for tests

	// epoch counts the server's crashes twice: odd while it is down, even when it is
	// up again. What was acknowledged in one epoch may be lost in the next, because
	// asynchronous commits are.
	epoch    atomic.Int64
	sessions atomic.Int64
	reads    atomic.Int64 // through pgaccel, in a shape that it takes

	slowest      time.Duration // until a table was accelerated again
	slowestQuery string

	mu        sync.Mutex
	pg        *pgserver.Server
	violation error
	stop      context.CancelFunc // of the program

	accelerator struct {
		cmd         *exec.Cmd
		exited      chan struct{}
		listen, web int
		counts      map[string]int64 // of processes that have ended, by reason; "" is accelerated
	}
}

// newWorld starts a server with the schema, and pgaccel over all tables of schema
// public.
func newWorld(ctx context.Context, binary string, seed uint64, p *program, data string) (*world, error) {
	dir, err := os.MkdirTemp("", "pgaccel-programs-")
	if err != nil {
		return nil, err
	}
	w := &world{seed: seed, binary: binary, dir: dir, serve: p.serve, data: data, history: newHistory(), stop: func() {}}
	w.accelerator.counts = map[string]int64{}
	if err := w.start(ctx, p.schema, p.faults); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *world) start(ctx context.Context, schema string, smallDisk bool) error {
	if err := os.Chmod(w.dir, 0o755); err != nil { // the server may run as another user
		return err
	}
	if smallDisk {
		w.mountDisk()
	}
	err := w.startServer(ctx)
	if err != nil {
		return err
	}
	if w.link, err = newLink(w.serverAddress, w.seed); err != nil {
		return err
	}
	admin := w.session("admin", direct)
	defer admin.close()
	for sql := range strings.SplitSeq(strings.TrimSpace(schema), ";\n") {
		if _, err := admin.do(sql); err != nil {
			return fmt.Errorf("%w in %s", err, sql)
		}
	}
	if w.binary == "" {
		return nil
	}
	ports, err := freePorts(2)
	if err != nil {
		return err
	}
	w.accelerator.listen, w.accelerator.web = ports[0], ports[1]
	if err := w.startAccelerator(); err != nil {
		return err
	}
	return w.ready(ctx)
}

// close ends everything and removes the files.
func (w *world) close() {
	w.killAccelerator()
	if w.link != nil {
		w.link.close()
	}
	if w.pg != nil {
		w.pg.Stop()
	}
	if w.disk != "" {
		syscall.Unmount(w.disk, syscall.MNT_DETACH)
	}
	os.RemoveAll(w.dir)
}

// diskSize is enough for the server's log between checkpoints and all tables.
const diskSize = "1g"

// mountDisk gives the server's data a file system of its own, where we may: the
// nemesis fills it.
func (w *world) mountDisk() {
	disk := filepath.Join(w.dir, "disk")
	if os.Mkdir(disk, 0o755) == nil && syscall.Mount("tmpfs", disk, "tmpfs", 0, "size="+diskSize) == nil {
		w.disk = disk
	}
}

// startServer starts the server, for the first time or again on the same data. Its
// port may be another one.
func (w *world) startServer(ctx context.Context) error {
	pg, err := w.runServer(ctx)
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.pg = pg
	w.mu.Unlock()
	return nil
}

// runServer starts it where nobody finds it.
func (w *world) runServer(ctx context.Context) (*pgserver.Server, error) {
	dir := w.dir
	if w.disk != "" {
		dir = w.disk
	}
	return pgserver.Start(ctx, pgserver.Options{Dir: filepath.Join(dir, "pg"), Settings: map[string]string{
		"max_wal_size": "128MB", "shared_buffers": "64MB", "logical_decoding_work_mem": "'1MB'", "log_min_messages": "fatal", "log_min_error_statement": "fatal"}})
}

func (w *world) server() *pgserver.Server {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pg
}

func (w *world) serverAddress() string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(w.server().Port))
}

// url is a connection string; more settings may be appended to it. Sessions take
// whatever can be taken: the cost model decides nothing here.
func (w *world) url(via route) string {
	port := w.server().Port
	if via == through && w.binary != "" {
		port = w.accelerator.listen
	}
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable&options=-c%%20pgaccel.mode%%3Dforce%%20-c%%20pgaccel.ties%%3Dforward", port)
}

// random returns a generator that depends on the seed and the name alone.
func (w *world) random(name string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.New(rand.NewPCG(w.seed, h.Sum64()))
}

// violate records a violation, the first one only, and ends the program.
func (w *world) violate(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	w.history.note("VIOLATION", "%v", err)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.violation == nil {
		w.violation = err
	}
	w.stop()
}

func (w *world) violated() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.violation
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

// startAccelerator starts pgaccel; it does not wait.
func (w *world) startAccelerator() error {
	log, err := os.OpenFile(filepath.Join(w.dir, "pgaccel.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	args := []string{"serve", "--upstream", fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", w.link.port()),
		"--listen", fmt.Sprintf("127.0.0.1:%d", w.accelerator.listen), "--http", fmt.Sprintf("127.0.0.1:%d", w.accelerator.web), "--accelerate", "public.*", "--trials=off"}
	if w.data != "" {
		args = append(args, "--data-dir", w.data, "--checkpoint-interval", "300ms")
	}
	cmd := exec.Command(w.binary, append(args, w.serve...)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PGOPTIONS=") })
	exited := make(chan struct{})
	if err := subprocess.Start(cmd, syscall.SIGKILL); err != nil {
		return err
	}
	go func() { cmd.Wait(); close(exited) }()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.accelerator.cmd, w.accelerator.exited = cmd, exited
	return nil
}

// ready waits until pgaccel has copied every table.
func (w *world) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		if r, err := http.Get(w.web("/readyz?tables")); err == nil {
			r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-w.accelerator.exited:
			return fmt.Errorf("pgaccel has ended:\n%s", w.logTail())
		case <-ctx.Done():
			return fmt.Errorf("pgaccel is not ready: %w\n%s", ctx.Err(), w.logTail())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (w *world) web(path string) string {
	return fmt.Sprintf("http://127.0.0.1:%d%s", w.accelerator.web, path)
}

// killAccelerator ends pgaccel without a chance to clean up.
func (w *world) killAccelerator() {
	if w.accelerator.cmd == nil {
		return
	}
	w.remember()
	w.accelerator.cmd.Process.Kill()
	<-w.accelerator.exited
}

// stopAccelerator asks pgaccel to end.
func (w *world) stopAccelerator() error {
	w.remember()
	w.accelerator.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-w.accelerator.exited:
		return nil
	case <-time.After(20 * time.Second):
		w.killAccelerator()
		return errors.New("pgaccel did not end when asked to")
	}
}

// remember adds the counters of a process that is about to end to the sums.
func (w *world) remember() {
	now := w.scrape()
	w.mu.Lock()
	defer w.mu.Unlock()
	for reason, n := range now {
		w.accelerator.counts[reason] += n
	}
}

// scrape reads how many executions were forwarded, by reason; "" is accelerated.
func (w *world) scrape() map[string]int64 {
	counts := map[string]int64{}
	if w.binary == "" {
		return counts
	}
	client := http.Client{Timeout: 5 * time.Second}
	r, err := client.Get(w.web("/metrics"))
	if err != nil {
		return counts
	}
	defer r.Body.Close()
	lines := bufio.NewScanner(r.Body)
	for lines.Scan() {
		line, ok := strings.CutPrefix(lines.Text(), `pgaccel_queries_total{reason="`)
		if !ok {
			continue
		}
		reason, rest, _ := strings.Cut(line, `"`)
		n, err := strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64)
		if strings.Contains(rest, `route="partial"`) {
			reason = "partial"
		}
		if err == nil {
			counts[reason] += int64(n)
		}
	}
	return counts
}

// counts returns the sums over all processes of pgaccel.
func (w *world) counts() map[string]int64 {
	sum := w.scrape()
	w.mu.Lock()
	defer w.mu.Unlock()
	for reason, n := range w.accelerator.counts {
		sum[reason] += n
	}
	return sum
}

func (w *world) log() string {
	text, _ := os.ReadFile(filepath.Join(w.dir, "pgaccel.log"))
	return string(text)
}

func (w *world) logTail() string {
	text := w.log()
	return text[max(0, len(text)-5000):]
}

// reportCounts prints who answered.
func (w *world) reportCounts(out io.Writer) {
	counts := w.counts()
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		name := reason
		if name == "" {
			name = "accelerated"
		}
		fmt.Fprintf(out, "  %8d %s\n", counts[reason], name)
	}
}
