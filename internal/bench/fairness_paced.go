package bench

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// pacedRate is how many small statements of each kind a second one client sends beside
// heavy ones.
const pacedRate = 300

// paced has pgbench send statements of a kind on one connection at random moments, whether
// or not those before have been answered, and returns what each took from the moment for
// which it was due. A client that waits for the answer before it sends the next sends few
// while the server stalls and many while it does not, so that its percentiles are those of
// the good moments (coordinated omission).
//
// In one process with the clients of heavy queries it would wait for these, on the side that
// gives them more answers.
func (f *fairness) paced(ctx context.Context, c fairnessCase, kind string, seed uint64) ([]time.Duration, error) {
	sql := "SELECT 1;\n"
	if kind == pointKind {
		sql = fmt.Sprintf("\\set id random(1, %d)\nSELECT v FROM facts WHERE id = :id;\n", f.o.Rows)
	}
	return paced(ctx, f.o.PGBinDir, f.server.Dir, f.addr(c.side), sql, f.o.Duration, seed)
}

// paced sends the script's statements to an address. It writes to a folder of its own in dir.
func paced(ctx context.Context, binDir, dir, addr, sql string, d time.Duration, seed uint64) ([]time.Duration, error) {
	dir, err := os.MkdirTemp(dir, "paced")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	script := filepath.Join(dir, "script.sql")
	if err := os.WriteFile(script, []byte(sql), 0o644); err != nil {
		return nil, err
	}
	if _, err := runPgbench(ctx, binDir, addr, d, "-c", "1", "-R", strconv.Itoa(pacedRate),
		"--random-seed", strconv.FormatUint(seed, 10), "-f", script, "-l", "--log-prefix", filepath.Join(dir, "log")); err != nil {
		return nil, err
	}
	logs, err := filepath.Glob(filepath.Join(dir, "log.*"))
	if err != nil || len(logs) != 1 {
		return nil, fmt.Errorf("pgbench wrote %d logs", len(logs))
	}
	log, err := os.Open(logs[0])
	if err != nil {
		return nil, err
	}
	defer log.Close()
	var times []time.Duration
	for lines := bufio.NewScanner(log); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 3 {
			return nil, fmt.Errorf("pgbench's log: %q", lines.Text())
		}
		us, err := strconv.ParseInt(fields[2], 10, 64) // with what it was late
		if err != nil {
			return nil, fmt.Errorf("pgbench's log: %q", lines.Text())
		}
		times = append(times, time.Duration(us)*time.Microsecond)
	}
	return times, nil
}
