package bench

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/internal/pgserver"
)

func splitScript(script string) []string {
	return strings.Split(strings.TrimSpace(script), ";\n")
}

var (
	pgbenchRate   = regexp.MustCompile(`(?m)^tps = ([0-9.]+) `)
	pgbenchFailed = regexp.MustCompile(`(?m)^number of failed transactions: (\d+) `)
)

// pgbench runs the point query for a while and returns transactions a second, without
// the time to connect.
func (p *passthrough) pgbench(ctx context.Context, t *passTarget, c passCase) (float64, error) {
	script := filepath.Join(p.server.Dir, "point-"+strings.ReplaceAll(t.table, ".", "-")+".sql")
	sql := fmt.Sprintf("\\set aid random(1, %d)\nSELECT abalance FROM %s WHERE aid = :aid;\n", 100_000*p.o.Scale, t.table)
	if err := os.WriteFile(script, []byte(sql), 0o644); err != nil {
		return 0, err
	}
	return runPgbench(ctx, p.o.PGBinDir, t.addr, p.o.Duration, "-M", c.mode,
		"-c", strconv.Itoa(c.clients), "-j", strconv.Itoa(min(2, c.clients)), "-f", script)
}

// runPgbench runs pgbench as a client of an address and returns transactions a second. It is in
// a session of its own: the terminal's Ctrl-C is for us (ctx ends it), and the kernel's scheduler
// may group processes by session.
func runPgbench(ctx context.Context, binDir, addr string, d time.Duration, args ...string) (float64, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return 0, err
	}
	args = append([]string{"-h", host, "-p", port, "-U", "postgres", "-n", "-T", strconv.Itoa(max(int(d/time.Second), 1))}, args...)
	cmd := exec.CommandContext(ctx, filepath.Join(binDir, "pgbench"), append(args, "postgres")...)
	cmd.Env = append(os.Environ(), "PGSSLMODE=disable", "PGGSSENCMODE=disable")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("pgbench: %w\n%s", err, out)
	}
	return parsePgbench(string(out))
}

func parsePgbench(out string) (float64, error) {
	rate := pgbenchRate.FindStringSubmatch(out)
	if failed := pgbenchFailed.FindStringSubmatch(out); rate == nil || failed != nil && failed[1] != "0" {
		return 0, fmt.Errorf("pgbench's output:\n%s", out)
	}
	return strconv.ParseFloat(rate[1], 64)
}

// drained is what a large result consisted of.
type drained struct {
	rows, bytes int64 // messages D or d; bytes of all messages
	sum         uint32
}

// drain reads the large results from every target, in rounds as bench.
func (p *passthrough) drain(ctx context.Context) error {
	w := p.progress.start("large results", 0)
	defer w.done()
	for round := range p.o.Rounds {
		for _, d := range drainSQL {
			for i := range p.targets {
				t := p.targets[(i+round)%len(p.targets)]
				if t.table != "plain.ledger" {
					continue // the same address again
				}
				got, took, err := drainOnce(ctx, t.url(), d.sql)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", t.name, d.name, err)
				}
				if want, known := p.drained[d.name]; !known {
					p.drained[d.name] = got
				} else if got != want {
					return fmt.Errorf("%s, %s: %d rows of %d bytes (%x) instead of %d of %d (%x)", t.name, d.name, got.rows, got.bytes, got.sum, want.rows, want.bytes, want.sum)
				}
				t.drains[d.name] = append(t.drains[d.name], took)
			}
		}
	}
	return nil
}

// drainOnce runs one statement and reads the raw answer, faster than any driver: what
// is timed is the way of the bytes, not what a client makes of them.
func drainOnce(ctx context.Context, url, sql string) (d drained, took time.Duration, err error) {
	pc, err := pgconn.Connect(ctx, url)
	if err != nil {
		return d, 0, err
	}
	if err := pc.SyncConn(ctx); err != nil {
		return d, 0, err
	}
	h, err := pc.Hijack()
	if err != nil {
		return d, 0, err
	}
	defer h.Conn.Close()
	query := append([]byte{'Q', 0, 0, 0, 0}, sql...)
	query = append(query, 0)
	binary.BigEndian.PutUint32(query[1:], uint32(len(query)-1))
	start := time.Now()
	if _, err := h.Conn.Write(query); err != nil {
		return d, 0, err
	}
	table := crc32.MakeTable(crc32.Castagnoli)
	in := bufio.NewReaderSize(h.Conn, 256<<10)
	for {
		head, err := in.Peek(5)
		if err != nil {
			return d, 0, err
		}
		kind, left := head[0], int(binary.BigEndian.Uint32(head[1:]))+1
		d.bytes += int64(left)
		switch kind {
		case 'D', 'd':
			d.rows++
		case 'E':
			text, _ := io.ReadAll(io.LimitReader(in, int64(left)))
			return d, 0, fmt.Errorf("%s: %q", sql, text)
		}
		for left > 0 {
			part, err := in.Peek(min(left, max(in.Buffered(), 1)))
			if err != nil {
				return d, 0, err
			}
			d.sum = crc32.Update(d.sum, table, part)
			left -= len(part)
			in.Discard(len(part))
		}
		if kind == 'Z' {
			took = time.Since(start)
			h.Conn.Write([]byte{'X', 0, 0, 0, 4})
			return d, took, nil
		}
	}
}

// bouncer is a PgBouncer that we started.
type bouncer struct {
	addr string
	cmd  *exec.Cmd
}

func findPgBouncer() string {
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// startBouncer starts PgBouncer in front of the server.
func startBouncer(ctx context.Context, program string, server *pgserver.Server, mode string) (*bouncer, error) {
	addr, err := freeAddress("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(addr)
	dir := filepath.Join(server.Dir, "pgbouncer-"+mode)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	users, config, log := filepath.Join(dir, "users"), filepath.Join(dir, "pgbouncer.ini"), filepath.Join(dir, "log")
	// Sessions of the server's that last from one run to the next have the table's pages mapped,
	// which a new one does at first touch, several microseconds a query for seconds. So where
	// sessions are the clients' own they begin with each run, as on every other way.
	lifetime := 3600
	if mode == "session" {
		lifetime = 0
	}
	text := fmt.Sprintf(`[databases]
postgres = host=127.0.0.1 port=%d dbname=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = trust
auth_file = %s
pool_mode = %s
server_lifetime = %d
default_pool_size = 32
max_client_conn = 1000
log_connections = 0
log_disconnections = 0
`, server.Port, port, users, mode, lifetime)
	if err := os.WriteFile(users, []byte("\"postgres\" \"\"\n"), 0o644); err != nil {
		return nil, err
	}
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return nil, err
	}
	logFile, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer logFile.Close()
	cmd := exec.Command(program, config)
	cmd.Stdout, cmd.Stderr = logFile, logFile
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Getuid() == 0 { // PgBouncer refuses to run as root
		for _, name := range []string{"postgres", "nobody"} {
			if u, err := user.Lookup(name); err == nil {
				uid, _ := strconv.Atoi(u.Uid)
				gid, _ := strconv.Atoi(u.Gid)
				cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
				break
			}
		}
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	b := &bouncer{addr, cmd}
	for range 200 {
		conn, err := pgconn.Connect(ctx, "postgres://postgres@"+addr+"/postgres?sslmode=disable")
		if err == nil {
			conn.Close(ctx)
			return b, nil
		}
		if ctx.Err() != nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	b.stop()
	why, _ := os.ReadFile(log)
	return nil, fmt.Errorf("pgbouncer did not start:\n%s", why)
}

func (b *bouncer) stop() {
	b.cmd.Process.Signal(syscall.SIGINT)
	ended := make(chan struct{})
	go func() { b.cmd.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(3 * time.Second):
		b.cmd.Process.Kill()
		<-ended
	}
}

// middle is the median of the numbers; 0 of none.
func middle(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	if len(s) == 0 {
		return 0
	}
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// print writes the tables. Ratios are of medians, to the direct connection.
func (p *passthrough) print(out io.Writer) {
	p.printHeader(out)
	p.printPoints(out)
	p.printDrains(out)
	p.printMemory(out)
}

// printUntilInterrupted writes the tables of what was measured before ctx ended.
func (p *passthrough) printUntilInterrupted(out io.Writer) {
	points := 0 // runs that have something to be compared with
	for _, t := range p.targets {
		if t != p.targets[0] {
			for c, rates := range t.rates {
				points += min(len(rates), len(p.targets[0].rates[c]))
			}
		}
	}
	if points == 0 {
		fmt.Fprintln(out, "Interrupted before point queries had run on two targets: no medians.")
		return
	}
	p.printHeader(out)
	fmt.Fprintf(out, "INTERRUPTED after %d of %d rounds of point queries: medians of the runs until then.\n\n", p.rounds, p.o.Rounds)
	p.printPoints(out)
	if len(p.drained) == len(drainSQL) {
		p.printDrains(out)
	}
}

func (p *passthrough) printHeader(out io.Writer) {
	fmt.Fprintf(out, "What a proxy adds to statements that it passes on: Postgres %s, medians of %d rounds of %s,\nall programs on this machine.\n\n", p.version, p.o.Rounds, p.o.Duration)
}

func (p *passthrough) printPoints(out io.Writer) {
	fmt.Fprintf(out, "Point queries (one row by primary key), transactions/s and share of direct's\n%-9s %7s", "protocol", "clients")
	for _, t := range p.targets {
		fmt.Fprintf(out, "  %21s", t.name)
	}
	fmt.Fprintln(out)
	direct := p.targets[0]
	for _, c := range passCases {
		fmt.Fprintf(out, "%-9s %7d", c.mode, c.clients)
		base := middle(direct.rates[c])
		for _, t := range p.targets {
			switch r := middle(t.rates[c]); {
			case r == 0:
				fmt.Fprintf(out, "  %21s", "-")
			case t == direct || base == 0:
				fmt.Fprintf(out, "  %21.0f", r)
			default:
				fmt.Fprintf(out, "  %14.0f %5.1f%%", r, 100*r/base)
			}
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "\nAdded to one client's latency, microseconds\n%-9s %7s", "", "")
	for _, t := range p.targets {
		fmt.Fprintf(out, "  %21s", t.name)
	}
	fmt.Fprintln(out)
	for _, c := range passCases {
		if c.clients != 1 {
			continue
		}
		fmt.Fprintf(out, "%-9s %7d", c.mode, c.clients)
		base := middle(direct.rates[c])
		for _, t := range p.targets {
			if r := middle(t.rates[c]); r == 0 || base == 0 || t == direct {
				fmt.Fprintf(out, "  %21s", "-")
			} else {
				fmt.Fprintf(out, "  %+21.1f", 1e6/r-1e6/base)
			}
		}
		fmt.Fprintln(out)
	}
}

func (p *passthrough) printDrains(out io.Writer) {
	direct := p.targets[0]
	fmt.Fprintf(out, "\nLarge results, %d rows, MB/s on the wire and share of direct's; bytes equal\n%-9s %7s", p.o.Rows, "", "MB")
	for _, t := range p.targets {
		if len(t.drains) > 0 {
			fmt.Fprintf(out, "  %21s", t.name)
		}
	}
	fmt.Fprintln(out)
	for _, d := range drainSQL {
		mb := float64(p.drained[d.name].bytes) / 1e6
		fmt.Fprintf(out, "%-9s %7.1f", d.name, mb)
		base := mb / median(direct.drains[d.name]).Seconds()
		for _, t := range p.targets {
			if len(t.drains) == 0 {
				continue
			}
			r := mb / median(t.drains[d.name]).Seconds()
			if len(t.drains[d.name]) == 0 {
				fmt.Fprintf(out, "  %21s", "-")
			} else if t == direct {
				fmt.Fprintf(out, "  %21.0f", r)
			} else {
				fmt.Fprintf(out, "  %14.0f %5.1f%%", r, 100*r/base)
			}
		}
		fmt.Fprintln(out)
	}
}

func (p *passthrough) printMemory(out io.Writer) {
	each := float64(p.memory[1]-p.memory[0]) / float64(max(p.o.Idle, 1))
	cost := fmt.Sprintf("%.1f kB each", each/1e3)
	if each <= 0 {
		cost = "less than can be told from the outside"
	}
	fmt.Fprintf(out, "\nMemory of pgaccel: %s with 1 idle connection, %s with %d more: %s\n", size(p.memory[0]), size(p.memory[1]), p.o.Idle, cost)
	if p.accepted > 0 {
		fmt.Fprintf(out, "pgaccel answered %d of the executions on the copied table itself.\n", p.accepted)
	}
}
