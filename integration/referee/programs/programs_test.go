package main

import (
	"os"
	"sync"
	"testing"
	"time"
)

var built struct {
	once sync.Once
	dir  string
	path string
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// pgaccel builds the program to test, once.
func pgaccel(t *testing.T) string {
	t.Helper()
	built.once.Do(func() {
		if built.path = os.Getenv("PGACCEL_PROGRAM"); built.path != "" { // another build, such as a release
			return
		}
		if built.dir, built.err = os.MkdirTemp("", "pgaccel-programs-bin-"); built.err == nil {
			built.path, built.err = build(built.dir, os.Getenv("PGACCEL_RACE") != "")
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.path
}

func find(t *testing.T, name string) *program {
	t.Helper()
	for i := range programs {
		if programs[i].name == name {
			return &programs[i]
		}
	}
	t.Fatal("no program", name)
	return nil
}

// TestPrograms runs each program for some seconds.
func TestPrograms(t *testing.T) {
	for name, duration := range map[string]time.Duration{"fence": 3 * time.Second, "mirror": 5 * time.Second, "append": 5 * time.Second,
		"skew": time.Second, "ddl-chaos": 7 * time.Second, "catalog": 8 * time.Second, "faults": 12 * time.Second, "restore": 15 * time.Second, "memory": 8 * time.Second} {
		t.Run(name, func(t *testing.T) {
			if err := find(t, name).run(t.Context(), runOptions{binary: pgaccel(t), seed: 1, duration: duration, out: t.Output()}); err != nil {
				t.Error(err)
			}
		})
	}
}
