package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"pgaccel/internal/ssb"
)

// duckdb is the program of bench/duckdb, running: a line of text asks it to run a query,
// a line of JSON answers.
type duckdb struct {
	Version     string  `json:"version"`
	Threads     int     `json:"threads"`
	LoadSeconds float64 `json:"load_seconds"`
	FileBytes   int64   `json:"file_bytes"`

	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *json.Decoder
	stderr strings.Builder
}

type duckdbAnswer struct {
	rows  int
	hash  string
	times []time.Duration
}

// startDuckDB writes the benchmark's directory (schema, rows, queries) under dir and
// starts the program on it. It gets as many threads as the machine has cores.
func startDuckDB(ctx context.Context, program, dir string, scale float64) (*duckdb, error) {
	dir = filepath.Join(dir, "duckdb")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := writeSSB(dir, scale); err != nil {
		return nil, err
	}
	d := &duckdb{cmd: exec.CommandContext(ctx, program, "-dir", dir, "-threads", fmt.Sprint(runtime.GOMAXPROCS(0)), "-serve")}
	d.cmd.Stderr = &d.stderr
	var err error
	if d.in, err = d.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := d.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting DuckDB's program (make build/duckdb makes it): %w", err)
	}
	d.out = json.NewDecoder(bufio.NewReader(out))
	if err := d.out.Decode(d); err != nil {
		d.stop()
		return nil, fmt.Errorf("loading DuckDB: %w\n%s", err, d.stderr.String())
	}
	return d, nil
}

// writeSSB writes schema.sql, TABLE.tsv and QUERY.sql.
func writeSSB(dir string, scale float64) error {
	if err := os.WriteFile(filepath.Join(dir, "schema.sql"), []byte(ssb.Schema()), 0o644); err != nil {
		return err
	}
	var g errgroup.Group
	for _, table := range ssb.Tables() {
		g.Go(func() error {
			f, err := os.Create(filepath.Join(dir, table+".tsv"))
			if err != nil {
				return err
			}
			return errors.Join(ssb.Generate(table, scale, 0, 1, f), f.Close())
		})
	}
	for _, q := range ssb.Queries() {
		if err := os.WriteFile(filepath.Join(dir, q.Name+".sql"), []byte(q.SQL), 0o644); err != nil {
			return errors.Join(err, g.Wait())
		}
	}
	return g.Wait()
}

// measure runs a query once unmeasured and runs times measured.
func (d *duckdb) measure(name string, runs int) (duckdbAnswer, error) {
	var line struct {
		Rows  int       `json:"rows"`
		Hash  string    `json:"hash"`
		Ms    []float64 `json:"ms"`
		Error string    `json:"error"`
	}
	if _, err := fmt.Fprintf(d.in, "%s %d\n", name, runs); err != nil {
		return duckdbAnswer{}, fmt.Errorf("%w\n%s", err, d.stderr.String())
	}
	if err := d.out.Decode(&line); err != nil {
		return duckdbAnswer{}, fmt.Errorf("%w\n%s", err, d.stderr.String())
	}
	if line.Error != "" {
		return duckdbAnswer{}, errors.New(line.Error)
	}
	a := duckdbAnswer{rows: line.Rows, hash: line.Hash}
	for _, ms := range line.Ms {
		a.times = append(a.times, time.Duration(ms*float64(time.Millisecond)))
	}
	return a, nil
}

// stop ends the program.
func (d *duckdb) stop() {
	d.in.Close()
	d.cmd.Wait()
}
