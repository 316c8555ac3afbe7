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
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// duckdb is the program of bench/duckdb, running: a line of JSON asks it to run a query,
// another answers.
type duckdb struct {
	Version     string  `json:"version"`
	Threads     int     `json:"threads"`
	LoadSeconds float64 `json:"load_seconds"`
	FileBytes   int64   `json:"file_bytes"`
	UsedBytes   int64   `json:"used_bytes"` // of the file, without free blocks
	Storage     []columnBytes

	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *json.Decoder
	stderr strings.Builder
}

type duckdbAnswer struct {
	rows  []byte // as answer's
	times []time.Duration
}

// startDuckDB writes the workload (schema, rows) under dir and starts the program on it. It gets as many threads as the machine has cores.
func startDuckDB(ctx context.Context, program, dir string, w workload) (*duckdb, error) {
	dir = filepath.Join(dir, "duckdb")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := w.writeFiles(ctx, dir); err != nil {
		return nil, err
	}
	d := &duckdb{cmd: exec.CommandContext(ctx, program, "-dir", dir, "-threads", fmt.Sprint(runtime.GOMAXPROCS(0)), "-serve")}
	d.cmd.Stderr = &d.stderr
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the terminal's Ctrl-C is for us; ctx ends it
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

// writeFiles writes schema.sql and TABLE.tsv, or its pieces in TABLE.tsv.N.
func (w workload) writeFiles(ctx context.Context, dir string) error {
	if err := os.WriteFile(filepath.Join(dir, "schema.sql"), []byte(w.schema), 0o644); err != nil {
		return err
	}
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	write := func(file string, rows func(io.Writer) error) {
		g.Go(func() error {
			f, err := os.Create(filepath.Join(dir, file))
			if err != nil {
				return err
			}
			return errors.Join(rows(f), f.Close())
		})
	}
	for _, table := range w.tables {
		if w.piece == nil {
			write(table+".tsv", func(f io.Writer) error { return w.write(ctx, table, f) })
			continue
		}
		pieces := runtime.GOMAXPROCS(0)
		for i := range pieces {
			write(fmt.Sprintf("%s.tsv.%03d", table, i), func(f io.Writer) error { return w.piece(table, i, pieces, f) })
		}
	}
	return g.Wait()
}

// measure runs a query once unmeasured and runs times measured.
func (d *duckdb) measure(name, sql string, runs int) (duckdbAnswer, error) {
	question := struct {
		Query string `json:"query"`
		SQL   string `json:"sql"`
		Runs  int    `json:"runs"`
	}{name, sql, runs}
	var line struct {
		Text  string    `json:"text"`
		Ms    []float64 `json:"ms"`
		Error string    `json:"error"`
	}
	if err := json.NewEncoder(d.in).Encode(question); err != nil {
		return duckdbAnswer{}, fmt.Errorf("%w\n%s", err, d.stderr.String())
	}
	if err := d.out.Decode(&line); err != nil {
		return duckdbAnswer{}, fmt.Errorf("%w\n%s", err, d.stderr.String())
	}
	if line.Error != "" {
		return duckdbAnswer{}, errors.New(line.Error)
	}
	a := duckdbAnswer{rows: []byte(line.Text)}
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
