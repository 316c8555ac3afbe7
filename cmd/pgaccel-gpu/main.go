package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"pgaccel/gpu/device"
	"pgaccel/gpu/worker"
)

// options are the flags.
type options struct {
	cacheDir   string
	lineInfo   bool
	emuDevices int
	emuSMs     int
	emuMemory  int64
}

func main() {
	var o options
	dir := ""
	if user, err := os.UserCacheDir(); err == nil {
		dir = filepath.Join(user, "pgaccel", "kernels")
	}
	flag.StringVar(&o.cacheDir, "cache-dir", env("PGACCEL_GPU_CACHE_DIR", dir), "keep compiled kernels in this `directory`; none are kept where it is empty")
	flag.BoolVar(&o.lineInfo, "lineinfo", false, "compile kernels with line numbers for profilers")
	flag.IntVar(&o.emuDevices, "emu-devices", int(number("PGACCEL_EMU_DEVICES", 1)), "`number` of emulated devices")
	flag.IntVar(&o.emuSMs, "emu-sms", int(number("PGACCEL_EMU_SMS", 0)), "`number` of multiprocessors of an emulated device; 0 is its default")
	flag.Int64Var(&o.emuMemory, "emu-memory", number("PGACCEL_EMU_MEMORY", 0), "`bytes` of memory of an emulated device; 0 is its default")
	list := flag.Bool("list", false, "print the devices and exit")
	test := flag.Bool("selftest", false, "compile and run a kernel on each device, print timings and exit")
	testBytes := flag.Int64("selftest-bytes", 0, "`bytes` that the self-test copies; 0 is a default for the kind of device")
	version := flag.Bool("version", false, "print the build and the protocol's version, and exit")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "pgaccel-gpu: unknown argument %q\n", flag.Arg(0))
		os.Exit(2)
	}
	var err error
	switch {
	case *version:
		fmt.Println("build", worker.Build(), "protocol", worker.Version())
	case *list || *test:
		var ex device.Executor
		if ex, err = open(o); err != nil {
			break
		}
		printDevices(ex)
		if *test {
			err = selftest(os.Stdout, ex, *testBytes)
		}
		err = errors.Join(err, ex.Close())
	default:
		err = serve(o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pgaccel-gpu:", err)
		os.Exit(1)
	}
}

// serve answers pgaccel until it closes the socket or the device is lost.
func serve(o options) error {
	conn, err := worker.Inherited()
	if err != nil {
		return err
	}
	ex, err := open(o)
	if err != nil {
		var fault *device.Fault
		if !errors.As(err, &fault) {
			fault = &device.Fault{Kind: device.FaultUnavailable, Text: err.Error()}
		}
		_ = worker.Refuse(conn, fault) // it says so, and so does the end of this process
		return err
	}
	// ex is not closed: a stream may hang, and the driver takes back all that was this process'.
	return worker.Serve(conn, ex)
}

func printDevices(ex device.Executor) {
	for i, d := range ex.Devices() {
		fmt.Printf("%s:%d %s, %s, %s, %d multiprocessors of %d threads, shared memory %d KiB a block and %d KiB a multiprocessor, L2 %d MiB, memory %d MiB, %d MiB free\n",
			d.Kind, i, d.Name, d.Arch, d.Driver, d.SMs, d.ThreadsPerSM, d.SharedPerBlock>>10, d.SharedPerSM>>10, d.L2>>20, d.Memory>>20, d.Free>>20)
	}
}

func env(name, otherwise string) string {
	if v, ok := os.LookupEnv(name); ok {
		return v
	}
	return otherwise
}

func number(name string, otherwise int64) int64 {
	v, ok := os.LookupEnv(name)
	if !ok {
		return otherwise
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		fmt.Fprintf(os.Stderr, "pgaccel-gpu: %s=%s is no number\n", name, v)
		os.Exit(2)
	}
	return n
}
