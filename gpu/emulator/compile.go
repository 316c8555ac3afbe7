package emulator

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"pgaccel/gpu/device"
)

var (
	//go:embed emulator.hpp
	emulatorHeader string
	//go:embed abi.h
	abiHeader string
)

// compiler is the machine's C++ compiler.
type compiler struct {
	path    string
	version string // its first line about itself
	flags   []string
}

// dividesTrap says that the processor stops a division of integers by zero. Those that do
// not compute 0, and the compiler has to look.
const dividesTrap = runtime.GOARCH == "amd64"

// findCompiler looks for it once a process.
var findCompiler = sync.OnceValues(func() (*compiler, error) {
	for _, name := range []string{os.Getenv("CXX"), "c++", "g++", "clang++"} {
		if name == "" {
			continue
		}
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		out, err := exec.Command(path, "--version").Output()
		if err != nil {
			continue
		}
		version, _, _ := strings.Cut(string(out), "\n")
		// -g1 has lines, for messages. Optimising more takes longer than it saves.
		c := &compiler{path: path, version: version, flags: strings.Fields("-std=c++20 -O1 -g1 -fPIC -shared -fvisibility=hidden -fno-exceptions -fno-rtti -ffp-contract=off -w " +
			"-DPGACCEL_EMULATOR -fsanitize=bounds,alignment,shift-exponent")}
		if !dividesTrap {
			c.flags = append(c.flags, "-fsanitize=integer-divide-by-zero")
		}
		if strings.Contains(version, "clang") {
			c.flags = append(c.flags, "-fsanitize-trap=all")
		} else {
			// Without the second flag modules would share variables by name.
			c.flags = append(c.flags, "-fsanitize-undefined-trap-on-error", "-fno-gnu-unique")
		}
		return c, nil
	}
	return nil, fault(device.FaultUnavailable, "c++", "there is no C++ compiler to compile kernels with")
})

// compilers bounds how many run at once.
var compilers = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)))

// hash names what a source compiles to.
func (c *compiler) hash(s device.Source) string {
	h := sha256.New()
	add := func(text string) { fmt.Fprintf(h, "%d:%s", len(text), text) }
	for _, text := range append([]string{c.path, c.version, abiHeader, emulatorHeader, s.Name, s.Code}, c.flags...) {
		add(text)
	}
	add("defines")
	for _, d := range s.Defines {
		add(d)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		add(name)
		add(s.Headers[name])
	}
	return hex.EncodeToString(h.Sum(nil))[:32]
}

// compile makes a shared object of a source at path, unless it is there.
func (c *compiler) compile(ctx context.Context, s device.Source, path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	select {
	case compilers <- struct{}{}:
		defer func() { <-compilers }()
	case <-ctx.Done():
		return ctx.Err()
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), "compile-")
	if err != nil {
		return fault(device.FaultOther, "compile "+s.Name, err.Error())
	}
	defer os.RemoveAll(dir)
	write := func(name, text string) {
		if err == nil {
			if name != filepath.Base(name) {
				err = fmt.Errorf("header %q is not a file's name", name)
				return
			}
			err = os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)
		}
	}
	for name, text := range s.Headers {
		write(name, text)
	}
	write("emulator.hpp", emulatorHeader)
	write("abi.h", abiHeader)
	source := s.Name + ".cu"
	write(source, s.Code)
	if err != nil {
		return fault(device.FaultOther, "compile "+s.Name, err.Error())
	}
	args := slices.Clone(c.flags)
	for _, d := range s.Defines {
		args = append(args, "-D"+d)
	}
	args = append(args, "-ffile-prefix-map="+dir+"=.", "-I", ".", "-o", "module.so", "-x", "c++", source)
	cmd := exec.CommandContext(ctx, c.path, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "TMPDIR="+dir)
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fault(device.FaultCompile, filepath.Base(c.path)+" "+source, firstErrors(string(out), err))
	}
	if err := os.Rename(filepath.Join(dir, "module.so"), path); err != nil {
		return fault(device.FaultOther, "compile "+s.Name, err.Error())
	}
	return nil
}

// firstErrors returns the lines of a compiler's output that say most.
func firstErrors(out string, err error) string {
	var lines []string
	all := strings.Split(strings.TrimSpace(out), "\n")
	for i, line := range all {
		if strings.Contains(line, "error:") || strings.Contains(line, "undefined reference") {
			lines = append(lines, line)
			if i+1 < len(all) && strings.Contains(all[i+1], "|") {
				lines = append(lines, all[i+1])
			}
		}
		if len(lines) >= 16 {
			break
		}
	}
	if len(lines) == 0 {
		lines = append(all[:min(len(all), 20)], err.Error())
	}
	return strings.Join(lines, "\n")
}

// sourcesVariable names a folder that gets every source that was compiled: scripts/ptx.sh
// has clang compile those of all tests.
const sourcesVariable = "PGACCEL_EMULATOR_SOURCES"

// keepSource writes a source that compiles to that folder, where there is one.
func keepSource(s device.Source, hash string) error {
	dir := os.Getenv(sourcesVariable)
	if dir == "" {
		return nil
	}
	var text strings.Builder
	for _, d := range s.Defines {
		name, value, _ := strings.Cut(d, "=")
		fmt.Fprintf(&text, "#define %s %s\n", name, value)
	}
	fmt.Fprintf(&text, "#line 1 %q\n%s", s.Name+".cu", s.Code)
	path := filepath.Join(dir, s.Name+"-"+hash[:12]+".cu")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		return fault(device.FaultOther, "compile "+s.Name, err.Error())
	}
	return nil
}

// line says where a pc lies that is offset bytes into an object, or "".
func line(object string, offset uint64) string {
	out, err := exec.Command("addr2line", "-e", object, "-i", "-s", fmt.Sprintf("%#x", offset)).Output()
	if err != nil {
		return ""
	}
	var at []string // what was inlined, then where
	for l := range strings.Lines(string(out)) {
		l, _, _ = strings.Cut(strings.TrimSpace(l), " (discriminator")
		if l != "" && !strings.HasPrefix(l, "?") && !strings.HasPrefix(l, "emulator.hpp") && !slices.Contains(at, l) {
			at = append(at, l)
		}
	}
	return strings.Join(at, ", called from ")
}
