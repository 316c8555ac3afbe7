package integration

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// emulator is the worker without a GPU, built once for all tests.
var emulator struct {
	once sync.Once
	path string
	err  error
}

// emulatorProgram builds the worker beside pgaccel.
func emulatorProgram(t *testing.T) string {
	t.Helper()
	pgaccelProgram(t)
	emulator.once.Do(func() {
		if p := os.Getenv("PGACCEL_GPU_PROGRAM"); p != "" {
			emulator.path = p
			return
		}
		emulator.path = filepath.Join(program.dir, "pgaccel-gpu-emu")
		out, err := exec.Command("go", "build", "-tags", "emu", "-o", emulator.path, "pgaccel/cmd/pgaccel-gpu").CombinedOutput()
		if err != nil {
			emulator.err = fmt.Errorf("go build -tags emu: %w\n%s", err, out)
		}
	})
	if emulator.err != nil {
		t.Fatal(emulator.err)
	}
	return emulator.path
}

// deviceKind is what runs the tests of a device: the emulator, or PGACCEL_DEVICE=cuda, with
// PGACCEL_GPU_PROGRAM naming the worker.
var deviceKind = cmp.Or(os.Getenv("PGACCEL_DEVICE"), "emu")

// demandDevice is what a session says that wants the device, and waits for it.
var demandDevice = "&options=-c%20pgaccel.mode%3Dforce%20-c%20pgaccel.device%3D" + deviceKind

// deviceStack is a stack for one test whose pgaccel has an emulated device.
func deviceStack(t *testing.T, schema string, more ...string) *stack {
	t.Helper()
	worker := emulatorProgram(t)
	s := privateStack(t, schema, append([]string{"--device", deviceKind, "--device-worker", worker}, more...)...)
	s.deviceIs(t, 1)
	return s
}

// deviceIs waits until pgaccel_device_up has the value.
func (s *stack) deviceIs(t testing.TB, up float64) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if s.metric(t, "pgaccel_device_up")[""] == up {
			return
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(s.log)
			t.Fatalf("pgaccel_device_up is not %v:\n%s", up, text)
		}
	}
}

// metric returns the values of a metric by its labels, as they are written.
func (s *stack) metric(t testing.TB, name string) map[string]float64 {
	t.Helper()
	values := map[string]float64{}
	for _, line := range s.scrape(t) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || rest == "" || rest[0] != ' ' && rest[0] != '{' {
			continue
		}
		at := strings.LastIndexByte(rest, ' ')
		v, err := strconv.ParseFloat(rest[at+1:], 64)
		if err != nil {
			t.Fatal(line, err)
		}
		values[strings.Trim(rest[:at], "{}")] += v
	}
	return values
}

// onDevice returns how many executions a device has run.
func (s *stack) onDevice(t testing.TB) (n int) {
	t.Helper()
	for labels, v := range s.metric(t, "pgaccel_device_queries_total") {
		if !strings.Contains(labels, `device="cpu"`) {
			n += int(v)
		}
	}
	return n
}

// runsOnDevice runs f and asserts how many more executions the device has run.
func (s *stack) runsOnDevice(t *testing.T, want int, f func()) {
	t.Helper()
	before, fallbacks := s.onDevice(t), s.metric(t, "pgaccel_device_fallbacks_total")
	log, _ := os.ReadFile(s.log)
	f()
	if got := s.onDevice(t) - before; got != want {
		t.Errorf("the device ran %d executions, want %d", got, want)
		for reason, n := range s.metric(t, "pgaccel_device_fallbacks_total") {
			if n > fallbacks[reason] {
				t.Logf("fallback %s: %v", reason, n-fallbacks[reason])
			}
		}
		if now, _ := os.ReadFile(s.log); len(now) > len(log) {
			t.Logf("pgaccel's log:\n%s", now[len(log):min(len(now), len(log)+3000)])
		}
	}
}

// workers returns the processes that pgaccel has started.
func (s *stack) workers(t testing.TB) (pids []int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// pid (name) state ppid ...
		name, rest, ok := strings.Cut(string(text), ") ")
		if !ok || !strings.Contains(name, "(pgaccel-gpu") {
			continue
		}
		if f := strings.Fields(rest); len(f) > 1 && f[1] == strconv.Itoa(s.cmd.Process.Pid) && f[0] != "Z" {
			pid, _ := strconv.Atoi(strings.Fields(name)[0])
			pids = append(pids, pid)
		}
	}
	return pids
}

// killWorker kills pgaccel's worker, as a crash in a driver would.
func (s *stack) killWorker(t testing.TB) {
	t.Helper()
	pids := s.workers(t)
	if len(pids) != 1 {
		t.Fatalf("pgaccel has %d workers", len(pids))
	}
	if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}
