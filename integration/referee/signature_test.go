package referee

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgaccel/internal/pgserver"
)

var update = flag.Bool("update", false, "add the server's signatures to "+signaturesFile)

// signaturesFile is what package docs asks about: for each signature the first version that is known to have it, and the signature.
const signaturesFile = "../../docs/testdata/signatures.txt"

// TestSignatures: the file has all signatures of the server's, and none else of its version or earlier ones.
func TestSignatures(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	server, err := pgserver.Start(ctx, pgserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	conn, err := connect(ctx, server.URL("postgres", "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	var w world
	if err := w.read(ctx, conn); err != nil {
		t.Fatal(err)
	}
	version := w.version / 10000
	list, err := readSignatures(ctx, conn)
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]bool{}
	for _, s := range list {
		has[s.String()] = true
	}
	text, err := os.ReadFile(signaturesFile)
	if err != nil && !*update {
		t.Fatal(err)
	}
	known := map[string]int{}
	for line := range strings.Lines(string(text)) {
		v, s, _ := strings.Cut(strings.TrimSpace(line), " ")
		known[s], _ = strconv.Atoi(v)
	}
	if *update {
		for s := range has {
			if v, ok := known[s]; !ok || version < v {
				known[s] = version
			}
		}
		var b strings.Builder
		for _, s := range slices.Sorted(maps.Keys(known)) {
			fmt.Fprintf(&b, "%d %s\n", known[s], s)
		}
		if err := os.WriteFile(signaturesFile, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for s := range has {
		if v, ok := known[s]; !ok || v > version {
			t.Errorf("the server has %s, which is not in %s", s, signaturesFile)
		}
	}
	for s, v := range known {
		if v <= version && !has[s] {
			t.Errorf("%s has %s, of version %d, which the server lacks", signaturesFile, s, v)
		}
	}
}

// TestExpressions asks a fixed number of expressions. `make referee REFEREE=-expressions` asks more.
func TestExpressions(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	r, err := RunExpressions(ctx, Options{Seed: 1, Queries: 600, Sessions: 2, Out: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range r.Differences {
		t.Errorf("difference: %s", d)
	}
	if r.Accelerated < 20 {
		t.Errorf("%d statements were accelerated", r.Accelerated)
	}
}
