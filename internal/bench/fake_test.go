package bench

import (
	"bufio"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"pgaccel/internal/clickbench"
	"pgaccel/internal/server"
	"pgaccel/internal/ssb"
	"pgaccel/internal/tpcds"
	"pgaccel/internal/tpch"
)

// fakeTables are those of all workloads, each once.
func fakeTables() []string {
	tables := slices.Concat(ssb.Source.Tables, tpch.Source.Tables, tpcds.Source.Tables, clickbench.Source.Tables, []string{"events"})
	slices.Sort(tables)
	return slices.Compact(tables)
}

// self is the test binary, which TestMain makes a pgaccel.
var self = func() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}()

// TestMain makes the test binary a pgaccel for the benchmarks to start: called as
// `serve`, it relays to the server and says on /metrics what --fake tells it to say;
// without --fake it is a real one. Called as bench/duckdb's program it answers every
// query with one row, 1.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		if err := fakeServe(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "-dir" {
		fakeDuckDB()
		return
	}
	os.Exit(m.Run())
}

func fakeDuckDB() {
	fmt.Println(`{"version": "fake", "threads": 3, "load_seconds": 0.5, "file_bytes": 900, "used_bytes": 500}`)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		fmt.Println(`{"text": "1\n", "ms": [1, 2, 3]}`)
	}
}

func fakeServe(args []string) error {
	f := flag.NewFlagSet("serve", flag.ContinueOnError)
	upstream, listen := f.String("upstream", "", ""), f.String("listen", "", "")
	addr, accelerate := f.String("http", "", ""), f.String("accelerate", "", "")
	fake := f.String("fake", "", "")
	f.String("trials", "", "")
	if err := f.Parse(args); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "time=1 level=INFO msg=hello")
	fmt.Fprintf(os.Stderr, "time=1 level=ERROR msg=%q\ntime=2 level=ERROR msg=%q\n", *fake, *fake)
	if *fake == "" {
		return realServe(*upstream, *listen, *addr, *accelerate)
	}
	if *fake == "die" {
		return fmt.Errorf("the fake dies of %s", *accelerate)
	}
	server, err := url.Parse(*upstream)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	var queries atomic.Int64
	http.HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		accelerated, forwarded := queries.Load(), int64(0)
		if *fake == "forward" {
			accelerated, forwarded = 0, accelerated
		}
		fmt.Fprintf(w, "# TYPE pgaccel_queries_total counter\npgaccel_queries_total{reason=\"\",route=\"accelerated\"} %d\npgaccel_queries_total{reason=\"too cheap\",route=\"forwarded\"} %d\n", accelerated, forwarded)
		fmt.Fprintf(w, "# TYPE pgaccel_table_bytes gauge\n# TYPE pgaccel_table_ready gauge\n")
		for _, t := range fakeTables() {
			state, ready := "ready", 1
			if t == "part" && *fake == "refuse" {
				state, ready = "refused", 0
			}
			fmt.Fprintf(w, "pgaccel_table_bytes{table=\"public.%s\"} 1000\npgaccel_table_ready{state=%q,table=\"public.%s\"} %d\n", t, state, t, ready)
		}
	})
	go http.ListenAndServe(*addr, nil)
	for {
		client, err := l.Accept()
		if err != nil {
			return err
		}
		up, err := net.Dial("tcp", server.Host)
		if err != nil {
			return err
		}
		go relay(up, client, false, func(kind byte, _ []byte) {
			if kind == 'Q' {
				queries.Add(1)
			}
		})
		go relay(client, up, true, func(kind byte, body []byte) {
			if last := len(body) - 1; kind == 'D' && *fake == "lie" && strings.ContainsRune("02468", rune(body[last])) {
				body[last]++
			}
		})
	}
}

// realServe is no fake.
func realServe(upstream, listen, http, accelerate string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	s, err := server.Start(ctx, server.Config{Upstream: upstream, Listen: []string{listen}, HTTP: http, Accelerate: []string{accelerate}})
	if err != nil {
		return err
	}
	defer s.Close()
	return s.Wait()
}

// relay copies messages and shows each to see. A client's first message has no kind.
func relay(to io.WriteCloser, from io.ReadCloser, kinds bool, see func(kind byte, body []byte)) {
	defer to.Close()
	defer from.Close()
	r := bufio.NewReader(from)
	for ; ; kinds = true {
		var message []byte
		if kinds {
			kind, err := r.ReadByte()
			if err != nil {
				return
			}
			message = append(message, kind)
		}
		var length [4]byte
		if _, err := io.ReadFull(r, length[:]); err != nil {
			return
		}
		message = append(message, length[:]...)
		body := make([]byte, binary.BigEndian.Uint32(length[:])-4)
		if _, err := io.ReadFull(r, body); err != nil {
			return
		}
		if kinds {
			see(message[0], body)
		}
		if _, err := to.Write(append(message, body...)); err != nil {
			return
		}
	}
}
