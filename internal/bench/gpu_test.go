package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestGPU runs every part on the emulator with tiny inputs: answers are checked, files are
// written.
func TestGPU(t *testing.T) {
	dir := t.TempDir()
	pgaccel, worker := filepath.Join(dir, "pgaccel"), filepath.Join(dir, "pgaccel-gpu-emu")
	for _, args := range [][]string{{"build", "-o", pgaccel, "pgaccel/cmd/pgaccel"}, {"build", "-tags", "emu", "-o", worker, "pgaccel/cmd/pgaccel-gpu"}} {
		if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
			t.Fatalf("go %v: %v\n%s", args, err, out)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	var out, progress bytes.Buffer
	file := filepath.Join(dir, "results", "run")
	err := GPU(ctx, GPUOptions{Quick: true, Runs: 1, Device: "emu", DeviceWorker: worker, Binary: pgaccel, Out: file, Progress: &progress}, &out)
	if err != nil {
		t.Errorf("%v\n%s\n%s", err, out.String(), progress.String())
	}
	for _, want := range []string{"device emu:0", "q4.3", "geomean", "of them joined", "lanes", "fused", "Biker", "atomic row", "Larger than memory", "Through the wire", "queries/s", "Bitmap indexes on the device", "Between kernel and client"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	for _, part := range []string{"ssb", "coprocessor"} {
		o := GPUOptions{Binary: self, Quick: true, Runs: 1, Device: "emu", DeviceWorker: worker, Only: []string{part}}
		got := interruptedGPU(t, o, part+": q1.3")
		for _, want := range []string{"q1.2 ", "INCOMPLETE: q1.3", "INTERRUPTED in part " + part} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in\n%s", part, want, got)
			}
		}
		if strings.Contains(got, "q2.1") {
			t.Errorf("%s: not interrupted\n%s", part, got)
		}
	}
	text, err := os.ReadFile(file + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var r gpuReport
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	var parts []string
	for _, table := range r.Tables {
		parts = append(parts, table.Part)
	}
	if parts = slices.Compact(parts); !slices.Equal(parts, GPUParts()) {
		t.Errorf("the file has the parts %q", parts)
	}
	checkIndexTables(t, r.Tables)
	checkWireTables(t, r.Tables)
	if markdown, err := os.ReadFile(file + ".md"); err != nil || !bytes.Contains(markdown, []byte("| q1.1 |")) || !bytes.Contains(markdown, []byte("## e2e: Through the wire")) {
		t.Errorf("%v\n%s", err, markdown)
	}
}

// interruptedGPU interrupts the run once its progress says where, and returns what it
// has printed.
func interruptedGPU(t *testing.T, o GPUOptions, where string) string {
	t.Helper()
	ctx, interrupt := context.WithTimeout(t.Context(), 8*time.Minute)
	defer interrupt()
	var out bytes.Buffer
	o.Progress = &watchedLog{after: where, then: interrupt}
	if err := GPU(ctx, o, &out); err != context.Canceled {
		t.Errorf("%s: error %v", where, err)
	}
	return out.String()
}

// TestGPURefuses: what cannot be meant is said at once.
func TestGPURefuses(t *testing.T) {
	for want, o := range map[string]GPUOptions{
		"no part \"speed\"":         {Only: []string{"speed"}},
		"use auto, cpu, cuda":       {Device: "tpu"},
		"that is no device":         {Device: "cpu"},
		"no such file or directory": {Device: "emu", DeviceWorker: "/nonexistent/worker"},
	} {
		o.Progress, o.Binary = io.Discard, self
		if err := GPU(t.Context(), o, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
}
