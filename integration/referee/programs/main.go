package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "programs:", err)
		os.Exit(1)
	}
}

// command reads the flags and runs the programs.
func command(ctx context.Context) error {
	duration := flag.Duration("d", time.Minute, "how long each program runs")
	only := flag.String("only", "", "comma-separated programs; empty for all")
	seed := flag.Uint64("seed", 0, "seed of all random choices; 0 takes one from the clock")
	binary := flag.String("pgaccel", "", "pgaccel to test; empty builds it")
	race := flag.Bool("race", false, "build pgaccel with the race detector")
	keep := flag.Bool("history", false, "write the history even without a violation")
	data := flag.Bool("data-dir", false, "let pgaccel keep its columns in a data directory")
	flag.Parse()
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	if *binary == "" {
		dir, err := os.MkdirTemp("", "pgaccel-programs-bin-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		if *binary, err = build(dir, *race); err != nil {
			return err
		}
	}
	var failed []error
	ran := 0
	for _, p := range programs {
		if *only != "" && !strings.Contains(","+*only+",", ","+p.name+",") {
			continue
		}
		ran++
		if err := p.run(ctx, runOptions{binary: *binary, seed: *seed, duration: *duration, keep: *keep, dataDir: *data, out: os.Stdout}); err != nil {
			failed = append(failed, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	if ran == 0 {
		return fmt.Errorf("-only %s names no program", *only)
	}
	return errors.Join(failed...)
}

// build builds pgaccel into the folder.
func build(dir string, race bool) (string, error) {
	path := filepath.Join(dir, "pgaccel")
	args := []string{"build", "-o", path}
	if race {
		args = append(args, "-race")
	}
	out, err := exec.Command("go", append(args, "pgaccel/cmd/pgaccel")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
}
