package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestMain is pgaccel itself where the environment says so.
func TestMain(m *testing.M) {
	if os.Getenv("PGACCEL_TEST_MAIN") != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestPasswordLeavesTheProcessList: serve with a password in --upstream, in each way to
// write it, does not show it once it listens, and still uses it.
func TestPasswordLeavesTheProcessList(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("/proc")
	}
	upstream, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer upstream.Close()
	sent := make(chan string, 16) // what clients of the server say after the startup packet
	go func() {
		for {
			conn, err := upstream.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				b := make([]byte, 4096)
				conn.Read(b)                                            // the startup packet
				conn.Write([]byte("R\x00\x00\x00\x08\x00\x00\x00\x03")) // the password, in the clear
				if n, _ := conn.Read(b); n > 5 {
					sent <- string(b[5:n])
				}
			}()
		}
	}()
	address := upstream.Addr().String()
	host, port, _ := net.SplitHostPort(address)
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("geheim\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"--upstream", "postgres://me:geheim@" + address + "/x?sslmode=disable"},
		{"--upstream=postgres://me@" + address + "/x?sslmode=disable&password=geheim"},
		{"--upstream", "host=" + host + " port=" + port + " user=me dbname=x sslmode=disable password='geheim'"},
		{"--upstream", "postgres://me@" + address + "/x?sslmode=disable", "--upstream-password-file", file},
	} {
		cmd := exec.Command(os.Args[0], append([]string{"serve", "--listen", "127.0.0.1:0", "--http", "", "--device", "cpu", "--accelerate", "public.*"}, args...)...)
		cmd.Env = append(os.Environ(), "PGACCEL_TEST_MAIN=1")
		stderr, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		log, warned := bufio.NewScanner(stderr), false
		for log.Scan() && !strings.Contains(log.Text(), "pgaccel is listening") {
			warned = warned || strings.Contains(log.Text(), "process list")
		}
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		got := <-sent
		cmd.Process.Kill()
		cmd.Wait()
		text := string(bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
		if strings.Contains(text, "geheim") || !strings.Contains(text, port) {
			t.Errorf("the process list has %s", text)
		}
		if warned != (len(args) < 4) {
			t.Errorf("%q: warned: %v", args, warned)
		}
		if got != "geheim\x00" {
			t.Errorf("%q: the server is given %q", args, got)
		}
	}
}
