package integration

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgaccel/internal/pgserver"
)

// The blocks of shell and SQL of these pages are run, one page behind the other, on one server. The word behind a block's
// language says how (the site does not have it, scripts/site.sh):
//
//	sh  run          by bash, in one folder, with the exports of those before
//	sh  dump         likewise, where there is a pg_dump for the server, into shop.sql, which has no publication
//	sh  serve        likewise, as the pgaccel that is there from then on, in place of the one before
//	sql superuser    by psql on the server, in the database postgres
//	sql owner        by psql on the server, as the owner of the database shop
//	sql pgaccel      likewise, through pgaccel
//	sql accelerated  likewise; pgaccel answers at least one statement, and the output is the server's
//	sql forwarded    likewise; the server answers all
//
// Others are for people only: root, build.
var docPages = []string{"quickstart.md", "advise.md", "configuration.md", "operations.md", "views.md", "forwarding.md", "../README.md"}

var peopleOnly = []string{"root", "build"}

// docBlock is a block of a page.
type docBlock struct{ at, lang, word, text string }

var docFence = regexp.MustCompile("(?ms)^```(sh|sql)(?: (\\w+))?\n(.*?)^```$")

func docBlocks(t *testing.T, page string) (list []docBlock) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../docs", page))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range docFence.FindAllSubmatchIndex(text, -1) {
		b := docBlock{at: fmt.Sprintf("%s:%d", page, 1+bytes.Count(text[:m[0]], []byte("\n"))), lang: string(text[m[2]:m[3]]), text: string(text[m[6]:m[7]])}
		if m[4] >= 0 {
			b.word = string(text[m[4]:m[5]])
		}
		list = append(list, b)
	}
	return list
}

// docReader does what the pages tell.
type docReader struct {
	*stack
	folder  string
	env     []string
	ports   []int
	exports string
	printed map[string]int // bytes, by how the block was run
}

var docPort = regexp.MustCompile(`\b(5432|6432|8432)\b`)

// local puts the ports of this test into a block.
func (r *docReader) local(text string) string {
	return docPort.ReplaceAllStringFunc(text, func(port string) string {
		switch port {
		case "5432":
			return fmt.Sprint(r.pg.Port)
		case "6432":
			return fmt.Sprint(r.ports[0])
		}
		return fmt.Sprint(r.ports[1])
	})
}

// shell runs a block.
func (r *docReader) shell(t *testing.T, b docBlock) []byte {
	t.Helper()
	text := r.local(b.text)
	out := run(t, r.env, nil, "bash", "-euo", "pipefail", "-c", "cd "+r.folder+"\n"+r.exports+text)
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "export ") {
			r.exports += line
		}
	}
	return out
}

// psql runs a block as a role, at a port.
func (r *docReader) psql(t *testing.T, port int, role, database string, b docBlock) []byte {
	t.Helper()
	return run(t, append(r.env, "PGPASSWORD=change me"), strings.NewReader(b.text), "psql", "-X", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", fmt.Sprint(port), "-U", role, database)
}

// serve starts the pgaccel of a block.
func (r *docReader) serve(t *testing.T, b docBlock) {
	t.Helper()
	r.end(t)
	cmd := exec.Command("bash", "-c", r.exports+"exec "+r.local(b.text))
	cmd.Dir, cmd.Env = r.folder, slices.Concat(r.env, []string{
		fmt.Sprintf("PGACCEL_LISTEN=127.0.0.1:%d", r.ports[0]), fmt.Sprintf("PGACCEL_HTTP=127.0.0.1:%d", r.ports[1]),
		// What else depends on how fast the machine is.
		"PGACCEL_WAIT_LIMIT=30s", "PGACCEL_TRIALS=off", "PGACCEL_CHECKPOINT_INTERVAL=100ms"})
	if err := r.start(r.ports, cmd); err != nil {
		t.Fatal(err)
	}
	r.proxy.db = "shop"
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := r.await(ctx); err != nil {
		t.Fatalf("%s: %v", b.at, err)
	}
}

// dump runs a block whose pg_dump must not be older than the server: a server that is fetched comes without.
func (r *docReader) dump(t *testing.T, b docBlock) {
	t.Helper()
	major := func(program string) int {
		version := strings.Fields(string(run(t, r.env, nil, "bash", "-c", program+" --version")))[2]
		digits, _, _ := strings.Cut(version, ".")
		n, err := strconv.Atoi(digits)
		if err != nil {
			t.Fatalf("%s is of version %q", program, version)
		}
		return n
	}
	if own, server := major("pg_dump"), major("postgres"); own < server {
		t.Logf("%s is not run: pg_dump %d, server %d", b.at, own, server)
		return
	}
	r.shell(t, b)
	dump, err := os.ReadFile(filepath.Join(r.folder, "shop.sql"))
	if err != nil || !bytes.Contains(dump, []byte("CREATE TABLE public.sale ")) || bytes.Contains(dump, []byte("CREATE PUBLICATION")) {
		t.Errorf("%s: a dump of %d bytes, %v", b.at, len(dump), err)
	}
}

// end ends the pgaccel that is there.
func (r *docReader) end(t *testing.T) {
	t.Helper()
	if r.cmd == nil {
		return
	}
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-r.exited:
	case <-time.After(time.Minute):
		t.Fatal("pgaccel does not end")
	}
	if bad := r.faults(); bad != "" {
		t.Errorf("pgaccel's log:\n%s", bad)
	}
	r.cmd = nil
}

func (r *docReader) block(t *testing.T, b docBlock) {
	t.Helper()
	var out []byte
	switch how := b.lang + " " + b.word; how {
	case "sh run":
		out = r.shell(t, b)
	case "sh dump":
		r.dump(t, b)
	case "sh serve":
		r.serve(t, b)
	case "sql superuser":
		out = r.psql(t, r.pg.Port, "postgres", "postgres", b)
	case "sql owner":
		out = r.psql(t, r.pg.Port, "shop", "shop", b)
	case "sql pgaccel":
		out = r.psql(t, r.ports[0], "shop", "shop", b)
	case "sql accelerated":
		r.accelerates(t, 1, func() { out = r.psql(t, r.ports[0], "shop", "shop", b) })
		if want := r.psql(t, r.pg.Port, "shop", "shop", b); !bytes.Equal(out, want) {
			t.Errorf("%s: pgaccel differs from the server%s", b.at, firstDifference(out, want))
		}
	case "sql forwarded":
		r.takes(t, "forwarded", 1, func() { r.forwardsAll(t, func() { out = r.psql(t, r.ports[0], "shop", "shop", b) }) })
	default:
		if !slices.Contains(peopleOnly, b.word) {
			t.Errorf("%s: nobody says how a block of %q is run", b.at, how)
		}
		return
	}
	r.printed[b.lang+" "+b.word] += len(out)
}

// TestPagesRun does what the pages tell, in a folder of its own, as their readers do.
func TestPagesRun(t *testing.T) {
	need(t, "psql", "apt-get install -y postgresql-client")
	need(t, "curl", "apt-get install -y curl")
	pg, err := pgserver.Start(t.Context(), pgserver.Options{
		Settings: map[string]string{"shared_preload_libraries": "pg_stat_statements"},
		HBA:      "local all all trust\nhost all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &stack{pg: pg, direct: target{"direct", pg.Port, "shop"}}
	s.stopAtEnd(t)
	r := &docReader{stack: s, folder: t.TempDir(), printed: map[string]int{}}
	if r.ports, err = freePorts(2); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(r.folder, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(pgaccelProgram(t), filepath.Join(bin, "pgaccel")); err != nil {
		t.Fatal(err)
	}
	r.env = []string{"PGOPTIONS=", "HOME=" + r.folder, "PATH=" + strings.Join([]string{bin, pg.BinDir, os.Getenv("PATH")}, ":")}
	for _, page := range docPages {
		for _, b := range docBlocks(t, page) {
			r.block(t, b)
		}
	}
	for _, how := range []string{"sh run", "sql superuser", "sql owner", "sql pgaccel", "sql accelerated", "sql forwarded"} {
		if r.printed[how] == 0 {
			t.Errorf("no block of %q has printed anything", how)
		}
	}
	metricsAreOnThePage(t, s.scrape(t))
	if *screenshots != "" {
		r.picture(t)
	}
}

// picture leaves console.png, as docs has it, in the folder of -screenshots.
func (r *docReader) picture(t *testing.T) {
	browser := consoleBrowser(t)
	var text strings.Builder
	text.WriteString("SET pgaccel.reuse = 'off';\n") // times are those of computing
	for _, mode := range []string{"auto", "off", "auto", "auto"} {
		fmt.Fprintf(&text, "SET pgaccel.mode = '%s';\n", mode)
		for _, sql := range []string{
			"SELECT s.city, count(*), sum(x.amount) FROM sale x JOIN store s ON s.id = x.store WHERE x.at >= '2026-03-01' GROUP BY s.city ORDER BY sum(x.amount) DESC LIMIT 5",
			"SELECT date_trunc('week', at) AS week, sum(amount), avg(amount) FROM sale WHERE at >= '2026-02-01' GROUP BY 1 ORDER BY 1",
			"SELECT count(DISTINCT store) FROM sale WHERE amount > 90",
			"SELECT corr(amount, store) FROM sale WHERE at >= '2026-05-01'",
			"SELECT * FROM sale WHERE id = 4711",
		} {
			text.WriteString(sql + ";\n")
		}
	}
	r.psql(t, r.ports[0], "shop", "shop", docBlock{text: text.String()})
	run(t, []string{"NODE_PATH=" + browser.modules, "HOME=" + t.TempDir()}, nil, browser.node, "clients/console_picture.js",
		r.http, browser.path, filepath.Join(*screenshots, "console.png"), "shop", "change me")
}

// metricsAreOnThePage compares what is exported with docs/metrics.md.
func metricsAreOnThePage(t *testing.T, lines []string) {
	t.Helper()
	page, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, line := range lines {
		f := strings.Fields(line)
		if len(f) != 4 || f[1] != "TYPE" || !strings.HasPrefix(f[2], "pgaccel_") {
			continue
		}
		if n++; !bytes.Contains(page, fmt.Appendf(nil, "\n| `%s` | %s | ", f[2], f[3])) {
			t.Errorf("metrics.md does not have %s, a %s", f[2], f[3])
		}
	}
	if n < 30 {
		t.Errorf("%d metrics are exported", n)
	}
}
