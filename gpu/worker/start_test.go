package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"pgaccel/gpu/device"
)

// fakeStart starts this test binary as a worker.
func fakeStart(mode string) StartOptions {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return StartOptions{Path: self, Env: []string{workerMode + "=" + mode}, Timeout: 30 * time.Second}
}

type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func TestStart(t *testing.T) {
	var log buffer
	o := fakeStart("serve")
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	c, err := Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	mem := memfd(t, []byte("shared content"))
	defer mem.Close()
	file, err := c.Share(mem)
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Alloc(0, 256)
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Run(context.Background(), 0, &device.Batch{Commands: []device.Command{
		{Op: device.OpCopyShared, File: file, Pieces: []device.Piece{{Offset: 7, Bytes: 7, Dst: p}}},
		{Op: device.OpRead, Src: p, Bytes: 7},
	}})
	if err != nil || string(r.Data[0]) != "content" {
		t.Errorf("read %q, %v", r.Data, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if s := log.String(); !strings.Contains(s, ": fake worker begins") {
		t.Errorf("the log has %q", s)
	}
}

func TestStartFails(t *testing.T) {
	for mode, want := range map[string]string{
		"no device": "no device: cuInit: CUDA_ERROR_NO_DEVICE",
		"linker":    "no device: no NVIDIA driver: libcuda.so.1 not found",
		"cu":        "no device: cuInit: CUDA_ERROR_NO_DEVICE",
		"hang":      "did not start within",
		"garbage":   "not a worker's greeting",
		"cut":       "ended: exit status 0",
		"old":       "of different builds",
		"crash":     "ended: exit status 2: panic: at once",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			o := fakeStart(mode)
			if mode == "hang" {
				o.Timeout = 200 * time.Millisecond
			}
			_, err := Start(context.Background(), o)
			if err == nil || device.KindOf(err) != device.FaultUnavailable || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
			t.Log(err)
		})
	}
	t.Run("missing", func(t *testing.T) {
		_, err := Start(context.Background(), StartOptions{Path: "/nowhere/pgaccel-gpu"})
		if device.KindOf(err) != device.FaultUnavailable || !strings.Contains(err.Error(), "/nowhere/pgaccel-gpu: no such file") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("no program", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "pgaccel-gpu")
		if err := os.WriteFile(path, []byte("no program"), 0o755); err != nil {
			t.Fatal(err)
		}
		_, err := Start(context.Background(), StartOptions{Path: path})
		if device.KindOf(err) != device.FaultUnavailable || !strings.Contains(err.Error(), "exec format error") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("canceled", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		if _, err := Start(ctx, fakeStart("hang")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func TestFind(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Find(device.CUDA)
	self, _ := os.Executable()
	if want := fmt.Sprintf("no device: pgaccel-gpu not found beside %s or on PATH", filepath.Base(self)); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "pgaccel-gpu-emu")
	if err := os.WriteFile(path, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	if got, err := Find(device.Emulator); err != nil || got != path {
		t.Errorf("found %q, %v", got, err)
	}
	if _, err := Find("abacus"); device.KindOf(err) != device.FaultUnavailable {
		t.Errorf("got %v", err)
	}
}

// TestDeaths ends workers in several ways, each while requests run.
func TestDeaths(t *testing.T) {
	for _, how := range []struct {
		name, mode, function, want string
	}{
		{"exit", "serve", "exit", "ended: exit status 3: "},
		{"panic", "serve", "panic", "ended: exit status 2: panic: a kernel that panics"},
		{"signal", "serve", "signal", "ended: exit status 2: SIGBUS: bus error"},
		{"fault", "serve", "lost", "kernel lost: illegal address"},
		{"garbage", "garbage later", "sleep", "malformed frame: kind 4294967295"},
	} {
		t.Run(how.name, func(t *testing.T) {
			t.Parallel()
			c, err := Start(context.Background(), fakeStart(how.mode))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_, err = c.Run(context.Background(), 0, launch(how.function, 0))
			if device.KindOf(err) != device.FaultLost || !strings.Contains(err.Error(), how.want) {
				t.Errorf("got %v, want %s", err, how.want)
			}
			<-c.Done()
			if _, err := c.Alloc(0, 1); device.KindOf(err) != device.FaultLost {
				t.Errorf("later: %v", err)
			}
		})
	}
}

// TestCrashLines has crashes as the runtime prints them.
func TestCrashLines(t *testing.T) {
	const trace = "PC=0x0 m=5 sigcode=1 addr=0x0\nsignal arrived during cgo execution\ngoroutine 34 [syscall, locked to thread]:\n" +
		"runtime.cgocall(0x5d1f20, 0xc000123450)\n\t/go/src/runtime/cgocall.go:167 +0x4b\n" +
		"pgaccel/gpu/worker._Cfunc_cuLinkComplete(0x7f0008, 0xc0000)\n\t_cgo_gotypes.go:541 +0x4c\n" +
		"pgaccel/gpu/worker._Cfunc_other(0x0)\nrax    0x0\nrip    0x0\nrflags 0x10246\n"
	for _, c := range []struct{ output, want string }{
		{"", ""},
		{"a\nb", "a; b"},
		{"1\n2\n3\n4\n5\n6\n7\n8\n9", "2; 3; 4; 5; 6; 7; 8; 9"},
		{"ready\nSIGSEGV: segmentation violation\n" + trace, "SIGSEGV: segmentation violation in cuLinkComplete"},
		{"ready\nfree(): invalid pointer\nSIGABRT: abort\n" + trace, "free(): invalid pointer; SIGABRT: abort in cuLinkComplete"},
		{"SIGABRT: abort\nPC=1", "SIGABRT: abort"},
		{"fatal error: unexpected signal during runtime execution\n[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x0]\n" + trace, "SIGSEGV in cuLinkComplete"},
		{"fatal error: all goroutines are asleep - deadlock!\ngoroutine 1:\nx._Cfunc_f(1)", "fatal error: all goroutines are asleep - deadlock!"},
		{"ready\npanic: boom\n[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x0]\ngoroutine 1 [running]:\nmain.main()\nexit status 2", "panic: boom"},
	} {
		var l lines
		for line := range strings.SplitSeq(c.output, "\n") {
			if s := strings.TrimSpace(line); s != "" {
				l.add(s)
			}
		}
		if got := l.String(); got != c.want {
			t.Errorf("%q is %q, not %q", c.output, got, c.want)
		}
	}
}

// TestHungRequest has a worker that does not answer in time killed.
func TestHungRequest(t *testing.T) {
	o := fakeStart("serve")
	o.Limit = 200 * time.Millisecond
	c, err := Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	batch := &device.Batch{}
	for range 200 {
		batch.Commands = append(batch.Commands, launch("sleep", 250).Commands...)
	}
	_, err = c.Run(context.Background(), 0, batch)
	if device.KindOf(err) != device.FaultLost || !strings.Contains(err.Error(), "has not answered for 200ms") {
		t.Errorf("got %v", err)
	}
}

// TestKilledAtRandomPoints kills supervised workers while several clients use them: every
// request ends, with an answer or a fault, and a new worker comes each time.
func TestKilledAtRandomPoints(t *testing.T) {
	clients := make(chan *Client, 100)
	s := Supervise(context.Background(), SupervisorOptions{
		StartOptions: fakeStart("serve"),
		Started:      func(c *Client) { clients <- c },
		MinDelay:     time.Millisecond, MaxDelay: 2 * time.Millisecond,
	})
	defer s.Close()
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	const deaths = 8
	for range deaths {
		var c *Client
		select {
		case c = <-clients:
		case <-time.After(30 * time.Second):
			t.Fatalf("no new worker; the state is %v", s.State())
		}
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				for i := 0; ; i++ {
					p, err := c.Alloc(0, 4096)
					if err == nil {
						_, err = c.Run(context.Background(), 0, &device.Batch{Commands: []device.Command{
							{Op: device.OpWrite, Dst: p, Data: make([]byte, 4096)},
							{Op: device.OpRead, Src: p, Bytes: 4096},
						}})
					}
					if err == nil {
						err = c.Free(0, p)
					}
					if err != nil {
						if device.KindOf(err) != device.FaultLost {
							t.Errorf("got %v", err)
						}
						return
					}
				}
			})
		}
		time.Sleep(time.Duration(r.IntN(20_000)) * time.Microsecond)
		c.kill(t)
		group.Wait()
		if err := c.Err(); err == nil || !strings.Contains(err.Error(), "signal: killed") {
			t.Errorf("the client says %v", err)
		}
	}
	if n := s.State().Restarts; n < deaths-1 {
		t.Errorf("%d restarts were counted", n)
	}
}

// kill ends the client's process as the system would.
func (c *Client) kill(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(c.pid, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}

func TestSupervisorStates(t *testing.T) {
	t.Run("no device", func(t *testing.T) {
		s := Supervise(context.Background(), SupervisorOptions{StartOptions: fakeStart("no device"), MinDelay: time.Hour})
		if got := s.Settled(context.Background()).String(); got != "none (cuInit: CUDA_ERROR_NO_DEVICE)" {
			t.Errorf("the state is %s", got)
		}
		if s.Client() != nil {
			t.Error("there is a client")
		}
		_ = s.Close()
		if got := s.State().String(); got != "none (shut down)" {
			t.Errorf("after Close: %s", got)
		}
	})
	t.Run("running", func(t *testing.T) {
		s := Supervise(context.Background(), SupervisorOptions{StartOptions: fakeStart("serve")})
		if got := s.Settled(context.Background()).String(); got != "running" {
			t.Errorf("the state is %s", got)
		}
		c := s.Client()
		if c == nil {
			t.Fatal("no client")
		}
		_ = s.Close()
		if _, err := c.Alloc(0, 1); device.KindOf(err) != device.FaultLost {
			t.Errorf("after Close: %v", err)
		}
	})
	t.Run("starting", func(t *testing.T) {
		s := Supervise(context.Background(), SupervisorOptions{StartOptions: fakeStart("hang")})
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		if got := s.Settled(ctx).String(); got != "starting" {
			t.Errorf("the state is %s", got)
		}
		_ = s.Close() // does not wait for the hanging start
	})
}

// TestCrashLoop has a worker that never starts tried again, at growing intervals.
func TestCrashLoop(t *testing.T) {
	var log buffer
	dir := t.TempDir()
	// Each start appends a line to a file, and ends.
	script := filepath.Join(dir, "pgaccel-gpu")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho start >> "+dir+"/starts\nexit 9\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := Supervise(context.Background(), SupervisorOptions{
		StartOptions: StartOptions{Path: script, Log: slog.New(slog.NewTextHandler(&log, nil))},
		MinDelay:     time.Millisecond, MaxDelay: 20 * time.Millisecond,
	})
	for {
		b, _ := os.ReadFile(dir + "/starts")
		if bytes.Count(b, []byte("\n")) >= 6 {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	_ = s.Close()
	if n := strings.Count(log.String(), "no device"); n != 1 {
		t.Errorf("the same reason was logged %d times", n)
	}
	if !strings.Contains(log.String(), "exit status 9") {
		t.Errorf("the log has %s", log.String())
	}
}
