// Command regress runs PostgreSQL's own regression suite (src/test/regress) twice, in its
// serial order: on a server, and on a second one through pgaccel, which accelerates all
// tables. It compares both outputs statement by statement, says how much was
// accelerated, and why the rest was not:
//
//	go run -tags invariants ./scripts/regress -suite DIR/src/test/regress
//
// It differs from integration/regress in that tables are copied before they are asked, also
// those that a script makes, and that each difference is shown with its statement.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

type options struct {
	suite, libdir, only, out, logic string
	adapted                         bool
	reasons                         int
	log                             *slog.Logger
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "wait" {
		wait(os.Args[2])
		return
	}
	var o options
	flag.StringVar(&o.suite, "suite", "build/regress/postgresql/src/test/regress", "folder of the suite: sql, data, parallel_schedule")
	flag.StringVar(&o.libdir, "libdir", "", "folder of the suite's regress.so; empty takes that of -suite; what needs its functions fails in both runs where there is none")
	flag.StringVar(&o.only, "only", "", "files to run after test_setup, with commas; empty runs all; of -logic how their names begin")
	flag.StringVar(&o.logic, "logic", "", "folder of sqllogictest's files, such as random/expr: these are run in place of -suite's")
	flag.StringVar(&o.out, "out", "", "folder for the outputs; empty makes a temporary one")
	flag.BoolVar(&o.adapted, "adapted", true, "have more copied: lasting tables in place of temporary ones, text in place of name in the common tables")
	flag.IntVar(&o.reasons, "reasons", 40, "print so many reasons of forwarded statements")
	verbose := flag.Bool("v", false, "print pgaccel's log")
	flag.Parse()
	level := slog.LevelError
	if *verbose {
		level = slog.LevelInfo
	}
	o.log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	differences, err := run(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "regress:", err)
		os.Exit(2)
	}
	if differences > 0 {
		os.Exit(1)
	}
}

// wait is what scripts call (see paced): it returns once tables are copied.
func wait(address string) {
	if r, err := http.Get("http://" + address); err == nil {
		r.Body.Close()
	}
}

func run(ctx context.Context, o options) (differences int, err error) {
	if o.suite, err = filepath.Abs(o.suite); err != nil {
		return 0, err
	}
	if o.libdir == "" {
		o.libdir = o.suite
	}
	files, err := schedule(o.suite, o.only)
	if o.logic != "" {
		files, err = logicFiles(o.logic, strings.Split(o.only, ","))
	}
	if err != nil {
		return 0, err
	}
	if o.out == "" {
		if o.out, err = os.MkdirTemp("", "pgaccel-regress-"); err != nil {
			return 0, err
		}
	}
	w, err := start(ctx, o)
	if err != nil {
		return 0, err
	}
	defer w.stop()
	fmt.Printf("%-40s %8s %8s %8s %8s %8s %8s\n", "file", "selects", "asked", "accel.", "partial", "differ", "order")
	for _, f := range files {
		if ctx.Err() != nil {
			return differences, ctx.Err()
		}
		n, err := w.file(ctx, f)
		if err != nil {
			return differences, err
		}
		differences += n
	}
	if sum := w.sum; sum.asked > 0 {
		fmt.Printf("%d asked, %d accelerated, %d in part: %.1f %%\n", sum.asked, sum.accelerated, sum.partial, 100*float64(sum.accelerated+sum.partial)/float64(sum.asked))
	}
	fmt.Println("outputs:", o.out)
	w.printReasons(o.reasons)
	return differences, nil
}

// schedule reads the suite's files in serial order.
func schedule(suite, only string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(suite, "parallel_schedule"))
	if err != nil {
		return nil, err
	}
	var files []string
	for line := range strings.Lines(string(text)) {
		if names, ok := strings.CutPrefix(line, "test:"); ok {
			files = append(files, strings.Fields(names)...)
		}
	}
	if only != "" {
		files = append([]string{"test_setup"}, strings.Split(only, ",")...)
	}
	return files, nil
}

// text reads a script.
func (w *world) text(name string) (string, error) {
	if w.logic != "" {
		return logicScript(w.logic, name)
	}
	text, err := os.ReadFile(filepath.Join(w.suite, "sql", name+".sql"))
	return string(text), err
}

// fileLimit bounds one file's run: what it has answered by then is compared.
const fileLimit = 4 * time.Minute

// file runs one file on both sides and prints its line.
func (w *world) file(ctx context.Context, name string) (int, error) {
	text, err := w.text(name)
	if err != nil {
		return 0, err
	}
	name = strings.ReplaceAll(name, "/", "_")
	script := paced(text, w.adapted && name != "temp")
	limited, cancel := context.WithTimeout(ctx, fileLimit)
	defer cancel()
	var outputs [2]string
	done := make(chan error, 2)
	for i, s := range []*side{w.direct, w.proxied} {
		go func() {
			var err error
			outputs[i], err = s.psql(limited, w, name, script)
			done <- err
		}()
	}
	if err := errors.Join(<-done, <-done); err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	if ctx.Err() != nil { // what was cut off is not compared
		return 0, ctx.Err()
	}
	for i, dir := range []string{"direct", "proxied"} {
		if err := os.WriteFile(filepath.Join(w.out, dir, name+".out"), []byte(outputs[i]), 0o644); err != nil {
			return 0, err
		}
	}
	found := compare(script, outputs[0], outputs[1])
	differ, order := 0, 0
	report := ""
	for _, d := range found {
		if d.order {
			order++
		} else {
			differ++
		}
		report += d.String()
	}
	if err := os.WriteFile(filepath.Join(w.out, name+".diff"), []byte(report), 0o644); err != nil {
		return 0, err
	}
	c, err := w.count(ctx)
	if err != nil {
		return 0, err
	}
	fmt.Printf("%-40s %8d %8d %8d %8d %8d %8d\n", name, selects(script), c.asked, c.accelerated, c.partial, differ, order)
	if c.internal > 0 {
		fmt.Printf("%d statements had internal errors\n", c.internal)
		differ++
	}
	w.sum.asked += c.asked
	w.sum.accelerated += c.accelerated
	w.sum.partial += c.partial
	return differ, nil
}
