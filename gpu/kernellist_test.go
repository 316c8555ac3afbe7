package gpu

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgaccel/gpu/device"
	"pgaccel/gpu/emulator"
	"pgaccel/gpu/program"
	"pgaccel/internal/checkedfile"
)

// settle waits until n kernels are compiled, and none is being compiled.
func settle(t *testing.T, m *Manager, n int) {
	t.Helper()
	d := m.current().devs[0]
	ended := func() (done int) {
		d.modules.mu.Lock()
		defer d.modules.mu.Unlock()
		for _, k := range d.modules.byName {
			select {
			case <-k.done:
				done++
			default:
				return -1
			}
		}
		return done
	}
	for limit := time.Now().Add(2 * time.Minute); ended() != n; time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("%d kernels are compiled, want %d", ended(), n)
		}
	}
}

// TestKernelList: what one manager has compiled is compiled for the next one's device before queries ask, so that one
// which would not wait for a compiler has it compute.
func TestKernelList(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 21))
	path := filepath.Join(t.TempDir(), "data", "kernels")
	fact, dim := testTables(r, nil)
	var queries []*program.Query
	for _, shape := range testShapes[:3] {
		queries = append(queries, shape(r, fact, dim))
	}
	m := newManager(t, Options{Memory: 64 << 20, Kernels: path}, newEmulator(t, emulator.Options{}))
	for _, q := range queries {
		if err := compare(m, q); err != nil {
			t.Fatal(err)
		}
	}
	compiled := int(m.Status()[0].Compiles)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the list: %v, %v", info, err)
	}
	for range 2 { // the second time nothing was asked in between
		m = newManager(t, Options{Memory: 64 << 20, Kernels: path}, newEmulator(t, emulator.Options{}))
		settle(t, m, compiled)
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	m = newManager(t, Options{Memory: 64 << 20, Kernels: path}, newEmulator(t, emulator.Options{}))
	settle(t, m, compiled)
	for i, q := range queries {
		want, err := program.Reference(q)
		if err != nil {
			t.Fatal(err)
		}
		got, stats, err := m.Run(context.Background(), q, RunOptions{})
		if err != nil {
			t.Fatalf("query %d: %v", i, err)
		}
		if err := sameResult(q.Program, got, want); err != nil || stats.Device != "emu:0" {
			t.Errorf("query %d on %q: %v", i, stats.Device, err)
		}
	}
	if s := m.Status()[0]; int(s.Compiles) != compiled || s.CompileSeconds <= 0 {
		t.Errorf("%d kernels were compiled in %v s, want %d", s.Compiles, s.CompileSeconds, compiled)
	}
}

// TestKernelListDamaged: a list of no use costs what it would have saved, and is replaced.
func TestKernelListDamaged(t *testing.T) {
	r := rand.New(rand.NewPCG(22, 22))
	fact, dim := testTables(r, nil)
	q := testShapes[0](r, fact, dim)
	path := filepath.Join(t.TempDir(), "kernels")
	listed := func(headers string) []byte {
		b, err := json.Marshal(kernelList{Headers: headers, Kernels: []listedKernel{{"scan_x", "no C++"}}})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, c := range []struct {
		name, magic string
		content     []byte
		change      func(b []byte) []byte
		level       slog.Level
	}{
		{"other form", "pgaccel kernels 0\n", listed(program.HeadersVersion()), nil, slog.LevelInfo},
		{"other headers", kernelListMagic, listed("0123"), nil, slog.LevelInfo},
		{"no JSON", kernelListMagic, []byte("{"), nil, slog.LevelWarn},
		{"cut", kernelListMagic, listed(program.HeadersVersion()), func(b []byte) []byte { return b[:len(b)-1] }, slog.LevelWarn},
		{"changed", kernelListMagic, listed(program.HeadersVersion()), func(b []byte) []byte { b[len(b)-1] ^= 1; return b }, slog.LevelWarn},
		{"empty", kernelListMagic, nil, func([]byte) []byte { return nil }, slog.LevelWarn},
	} {
		if err := checkedfile.Write(path, c.magic, c.content); err != nil {
			t.Fatal(err)
		}
		if c.change != nil {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, c.change(b), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var log bytes.Buffer
		m := New(Options{Memory: 64 << 20, Kernels: path, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if n := strings.Count(log.String(), "the list of kernels"); n != 1 || !strings.Contains(log.String(), "level="+c.level.String()) {
			t.Errorf("%s: the log has %q", c.name, log.String())
		}
		if err := m.Attach(newEmulator(t, emulator.Options{})); err != nil {
			t.Fatal(err)
		}
		if err := compare(m, q); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		compiled := int(m.Status()[0].Compiles)
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		m = newManager(t, Options{Memory: 64 << 20, Kernels: path}, newEmulator(t, emulator.Options{}))
		settle(t, m, compiled)
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	// Nor does it have to be there, or to be written.
	for _, path := range []string{filepath.Join(t.TempDir(), "a", "kernels"), "/dev/null/kernels"} {
		var log bytes.Buffer
		m := New(Options{Memory: 64 << 20, Kernels: path, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err := m.Attach(newEmulator(t, emulator.Options{})); err != nil {
			t.Fatal(err)
		}
		if err := compare(m, q); err != nil {
			t.Fatal(err)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		_, err := os.Stat(path)
		if written := err == nil; written == strings.Contains(log.String(), "cannot be written") {
			t.Errorf("%s: %v, and the log has %q", path, err, log.String())
		}
	}
}

// TestKernelListOrder: the kernels of this process come first, then those of the list, each once and up to a bound;
// what does not compile is left out.
func TestKernelListOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 23))
	path := filepath.Join(t.TempDir(), "kernels")
	f := &flaky{Executor: newEmulator(t, emulator.Options{})}
	var mu sync.Mutex
	var asked []string
	f.compile = func(s *device.Source) error {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, s.Name)
		if s.Name == "scan_3" {
			return &device.Fault{Kind: device.FaultCompile, Call: "test", Text: "no C++"}
		}
		return nil
	}
	list := kernelList{Headers: program.HeadersVersion()}
	for i := range kernelsKept + 5 {
		list.Kernels = append(list.Kernels, listedKernel{fmt.Sprintf("scan_%d", i), fmt.Sprintf("#include \"pgaccel.cuh\"\n// %d\n", i/kernelsKept)})
	}
	b, err := json.Marshal(&list)
	if err == nil {
		err = checkedfile.Write(path, kernelListMagic, b)
	}
	if err != nil {
		t.Fatal(err)
	}
	reader := newManager(t, Options{Memory: 64 << 20, Kernels: path}, nil)
	if n := len(reader.listed); n != kernelsKept {
		t.Fatalf("%d kernels were read", n)
	}
	m := newManager(t, Options{Memory: 64 << 20}, nil) // which nobody writes a list for
	m.listed = reader.listed[:5:5]
	if err := m.Attach(f); err != nil {
		t.Fatal(err)
	}
	settle(t, m, 1+5)
	want := []string{"transcode", "scan_0", "scan_1", "scan_2", "scan_3", "scan_4"}
	mu.Lock()
	if !slices.Equal(asked, want) {
		t.Errorf("compiled %q, want %q", asked, want)
	}
	mu.Unlock()
	fact, dim := testTables(r, nil)
	q := testShapes[0](r, fact, dim)
	if err := compare(m, q); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range m.kernels() {
		names = append(names, s.Name)
	}
	used := len(names) - 4
	if used < 1 || !slices.Equal(names[used:], []string{"scan_0", "scan_1", "scan_2", "scan_4"}) {
		t.Errorf("the list is %q", names)
	}
	for i := range kernelsKept {
		m.listed = append(m.listed, &device.Source{Name: fmt.Sprint("more_", i)})
	}
	if n := len(m.kernels()); n != kernelsKept {
		t.Errorf("%d kernels are listed", n)
	}
}

// TestCompileAhead: what no query waits for is compiled after what one waits for.
func TestCompileAhead(t *testing.T) {
	r := rand.New(rand.NewPCG(24, 24))
	f := &flaky{Executor: newEmulator(t, emulator.Options{})}
	var mu sync.Mutex
	var events []string
	note := func(e string) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, e)
	}
	hold := make(chan struct{})
	f.compile = func(s *device.Source) error {
		if s.Name == "ahead" {
			note("ahead begins")
		} else if s.Name != "transcode" {
			<-hold
			note("wanted ends")
		}
		return nil
	}
	m := newManager(t, Options{Memory: 64 << 20}, f)
	settle(t, m, 1)
	fact, dim := testTables(r, nil)
	q := testShapes[0](r, fact, dim)
	if _, _, err := m.Run(context.Background(), q, RunOptions{}); err != ErrCompiling {
		t.Fatal(err)
	}
	d := m.current().devs[0]
	source := program.ScanSource("ahead", "#include \"pgaccel.cuh\"\n")
	done := make(chan error)
	go func() { done <- d.modules.ahead(d, &source) }()
	time.Sleep(10 * time.Millisecond) // long enough for it not to wait, if that were so
	close(hold)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if events[len(events)-1] != "ahead begins" || len(events) < 2 {
		t.Errorf("%q", events)
	}
	if err := d.modules.ahead(d, &source); err != nil || d.modules.refused("ahead") {
		t.Errorf("again: %v", err)
	}
	// A query that is prepared for an execution to come has its kernels compiled likewise.
	other := testShapes[2](r, fact, dim)
	if got, _, err := m.Run(context.Background(), other, RunOptions{Prepare: true, Ahead: true}); got != nil || err != nil {
		t.Fatal(got, err)
	}
	for limit := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		d.modules.mu.Lock()
		waiting := d.modules.waiting
		d.modules.mu.Unlock()
		if waiting == 0 {
			break
		} else if time.Now().After(limit) {
			t.Fatalf("%d kernels wait", waiting)
		}
	}
	if _, stats, err := m.Run(context.Background(), other, RunOptions{}); err != nil || stats.Device == "" {
		t.Errorf("the kernels are not there: %v", err)
	}
	for i := range 2 * waitingMost { // a flood is cut
		d.modules.later(d, &device.Source{Name: fmt.Sprint("flood", i), Code: "no C++"})
		d.modules.mu.Lock()
		if n := d.modules.waiting; n > waitingMost {
			t.Errorf("%d kernels wait", n)
		}
		d.modules.mu.Unlock()
	}
}
