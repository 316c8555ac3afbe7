package integration

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgaccel/internal/pgserver"
)

const packageVersion = "1.2.3~test"

// unpackedDeb builds the deb for this machine and unpacks it. The program in it is an ordinary build, which is linked
// sooner than a release's.
func unpackedDeb(t *testing.T) (deb, root string) {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "pgaccel")
	run(t, nil, nil, "go", "build", "-ldflags", "-X pgaccel/internal/server.version="+packageVersion, "-o", program, "pgaccel/cmd/pgaccel")
	run(t, []string{"PGACCEL_PROGRAM=" + program, "PACKAGES_DIR=" + dir, "FORMATS=deb", "VERSION=" + packageVersion}, nil, "../scripts/packages.sh", runtime.GOARCH)
	found, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil || len(found) != 1 {
		t.Fatalf("packages: %q, %v", found, err)
	}
	root = filepath.Join(dir, "root")
	run(t, nil, nil, "dpkg-deb", "-x", found[0], root)
	return found[0], root
}

// TestPackage: the deb has what it should, and what is in it runs: by the unit's command line, with the packaged
// configuration, in front of a server.
func TestPackage(t *testing.T) {
	deb, root := unpackedDeb(t)
	program := filepath.Join(root, "usr/bin/pgaccel")
	t.Run("contents", func(t *testing.T) { packageContents(t, deb, root) })
	unit, err := os.ReadFile(filepath.Join(root, "usr/lib/systemd/system/pgaccel.service"))
	if err != nil {
		t.Fatal(err)
	}
	t.Run("unit", func(t *testing.T) { unitIsValid(t, root) })
	t.Run("settings", func(t *testing.T) { everySettingIsRead(t, root) })

	s := &stack{}
	if s.pg, err = pgserver.Start(t.Context(), pgserver.Options{}); err != nil {
		t.Fatal(err)
	}
	s.stopAtEnd(t)
	s.direct = target{"direct", s.pg.Port, "postgres"}
	direct := connect(t, s.direct.url("postgres"))
	if _, err := direct.Exec(t.Context(), "CREATE TABLE packed (id int PRIMARY KEY, v int); INSERT INTO packed SELECT i, i % 7 FROM generate_series(1, 20000) i").ReadAll(); err != nil {
		t.Fatal(err)
	}
	ports, err := freePorts(2)
	if err != nil {
		t.Fatal(err)
	}
	config := packagedConfig(t, root, map[string]string{
		"upstream":   s.pg.URL("postgres", "postgres"),
		"accelerate": "[public.*]",
		"listen":     fmt.Sprintf("127.0.0.1:%d", ports[0]),
		"http":       fmt.Sprintf("127.0.0.1:%d", ports[1]),
		"data-dir":   filepath.Join(t.TempDir(), "data"),
		"wait-limit": "5s",
		"trials":     "off",
	})
	if out := run(t, nil, nil, program, "check", "--config", config); !bytes.Contains(out, []byte("public.packed")) {
		t.Errorf("check says nothing of the table:\n%s", out)
	}

	// systemd would take the command line, and wait for word that the process is ready.
	start := regexp.MustCompile(`(?m)^ExecStart=/usr/bin/pgaccel (.*)$`).FindSubmatch(unit)
	if start == nil {
		t.Fatalf("the unit has no ExecStart:\n%s", unit)
	}
	args := strings.Fields(strings.ReplaceAll(string(start[1]), "/etc/pgaccel/pgaccel.yml", config))
	socket := filepath.Join(s.pg.Dir, "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	cmd := exec.Command(program, args...)
	cmd.Env = []string{"NOTIFY_SOCKET=" + socket}
	if err := s.start(ports, cmd); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 100)
	if err := manager.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	n, err := manager.Read(said)
	if text := string(said[:n]); err != nil || text != "READY=1" {
		log, _ := os.ReadFile(s.log)
		t.Fatalf("the service manager is told %q, %v\n%s", text, err, log)
	}
	proxy := connect(t, s.proxy.url("postgres")) // it is ready: nobody has to try again
	if err := s.await(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.accelerates(t, 1, func() {
		const sql = "SELECT v, count(*), sum(id) FROM packed GROUP BY v ORDER BY v"
		if got, want := fmt.Sprint(ask(t, proxy, sql, nil)), fmt.Sprint(ask(t, direct, sql, nil)); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	})
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil { // systemctl stop
		t.Fatal(err)
	}
	select {
	case <-s.exited:
	case <-time.After(time.Minute):
		t.Fatal("SIGTERM does not end it")
	}
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("status %d", code)
	}
}

// packageContents looks at the package itself.
func packageContents(t *testing.T, deb, root string) {
	for field, want := range map[string]string{"Package": "pgaccel", "Version": packageVersion, "Architecture": runtime.GOARCH} {
		if got := strings.TrimSpace(string(run(t, nil, nil, "dpkg-deb", "-f", deb, field))); got != want {
			t.Errorf("%s: %s, want %s", field, got, want)
		}
	}
	if got := string(run(t, nil, nil, filepath.Join(root, "usr/bin/pgaccel"), "version")); got != "pgaccel "+packageVersion+"\n" {
		t.Errorf("version: %s", got)
	}
	if got := string(run(t, nil, nil, "dpkg-deb", "-I", deb, "conffiles")); got != "/etc/pgaccel/pgaccel.yml\n" {
		t.Errorf("configuration files: %q", got)
	}
	for _, script := range []string{"preinst", "postinst", "prerm", "postrm"} {
		run(t, nil, bytes.NewReader(run(t, nil, nil, "dpkg-deb", "-I", deb, script)), "sh", "-n")
	}
	list := string(run(t, nil, nil, "dpkg-deb", "-c", deb))
	for _, line := range []string{
		`-rwxr-xr-x root/root .* \./usr/bin/pgaccel`,
		`drwxr-x--- root/pgaccel .* \./etc/pgaccel/`,
		`-rw-r--r-- root/root .* \./usr/lib/systemd/system/pgaccel@\.service`,
		`-rw-r--r-- root/root .* \./usr/lib/sysusers\.d/pgaccel\.conf`,
		`-rw-r--r-- root/root .* \./usr/share/bash-completion/completions/pgaccel`,
		`-rw-r--r-- root/root .* \./usr/share/zsh/vendor-completions/_pgaccel`,
		`-rw-r--r-- root/root .* \./usr/share/fish/vendor_completions\.d/pgaccel\.fish`,
		`-rw-r--r-- root/root .* \./usr/share/doc/pgaccel/copyright`,
		`-rw-r--r-- root/root .* \./usr/share/doc/pgaccel/README\.md`,
		`-rw-r--r-- root/root .* \./usr/share/doc/pgaccel/docs/quickstart\.md`,
	} {
		if !regexp.MustCompile(`(?m)^` + line + `$`).MatchString(list) {
			t.Errorf("the package has no %s", line)
		}
	}
	if t.Failed() {
		t.Log(list)
	}
	for _, command := range []string{"pgaccel", "pgaccel-serve", "pgaccel-check", "pgaccel-advise", "pgaccel-inspect"} {
		file, err := os.Open(filepath.Join(root, "usr/share/man/man1", command+".1.gz"))
		if err != nil {
			t.Error(err)
			continue
		}
		defer file.Close()
		page, err := gzip.NewReader(file)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(page); err != nil || !bytes.Contains(text, []byte(`"pgaccel `+packageVersion+`"`)) {
			t.Errorf("%s: %v\n%s", command, err, text)
		}
	}
}

// unitIsValid has systemd look at the units, whose program is where the package is unpacked.
func unitIsValid(t *testing.T, root string) {
	for unit, config := range map[string]string{"pgaccel.service": "/etc/pgaccel/pgaccel.yml", "pgaccel@.service": "/etc/pgaccel/%i.yml"} {
		text, err := os.ReadFile(filepath.Join(root, "usr/lib/systemd/system", unit))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(text, []byte(" --config "+config+"\n")) {
			t.Errorf("%s does not read %s", unit, config)
		}
		file := filepath.Join(t.TempDir(), unit)
		if err := os.WriteFile(file, bytes.ReplaceAll(text, []byte("=/usr/bin/pgaccel "), []byte("="+root+"/usr/bin/pgaccel ")), 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("systemd-analyze", "verify", "--man=no", file).CombinedOutput()
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, filepath.Base(strings.TrimSuffix(file, ".service"))) { // not of the machine's other units
				t.Errorf("systemd-analyze verify: %s", line)
			}
		}
		if err != nil {
			t.Errorf("systemd-analyze verify %s: %v\n%s", unit, err, out)
		}
	}
}

var setting = regexp.MustCompile(`(?m)^#?([a-z-]+):.*$`)

// packagedConfig is the packaged configuration file with some settings changed as a person does: their lines are there.
func packagedConfig(t *testing.T, root string, values map[string]string) (file string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "etc/pgaccel/pgaccel.yml"))
	if err != nil {
		t.Fatal(err)
	}
	changed := 0
	text = setting.ReplaceAllFunc(text, func(line []byte) []byte {
		name := string(setting.FindSubmatch(line)[1])
		if value, ok := values[name]; ok {
			changed++
			return []byte(name + ": " + value)
		}
		return line
	})
	if changed != len(values) {
		t.Errorf("%d of %d settings are in the packaged file", changed, len(values))
	}
	file = filepath.Join(t.TempDir(), "pgaccel.yml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// everySettingIsRead: the file has each flag of serve, and nothing of it is wrong when it is no comment any more: serve
// gets as far as the password's file, which there is none of.
func everySettingIsRead(t *testing.T, root string) {
	program := filepath.Join(root, "usr/bin/pgaccel")
	text, err := os.ReadFile(filepath.Join(root, "etc/pgaccel/pgaccel.yml"))
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, found := range setting.FindAllSubmatch(text, -1) {
		there[string(found[1])] = true
	}
	flags := regexp.MustCompile(`(?m)^\s+(?:-\w, )?--([a-z-]+)`).FindAllSubmatch(run(t, nil, nil, program, "serve", "--help"), -1)
	if len(flags) < 20 {
		t.Errorf("serve has %d flags", len(flags))
	}
	for _, found := range flags {
		if name := string(found[1]); !there[name] && name != "help" && name != "config" {
			t.Errorf("pgaccel.yml does not have %s", name)
		}
	}
	missing := filepath.Join(t.TempDir(), "password")
	all := setting.ReplaceAllFunc(text, func(line []byte) []byte { return bytes.TrimPrefix(line, []byte("#")) })
	all = bytes.Replace(all, []byte("/etc/pgaccel/password"), []byte(missing), 1)
	file := filepath.Join(t.TempDir(), "all.yml")
	if err := os.WriteFile(file, all, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(program, "serve", "--config", file).CombinedOutput()
	if want := "--upstream-password-file: stat " + missing; err == nil || !strings.Contains(string(out), want) {
		t.Errorf("serve says (%v)\n%s\nwant %s", err, out, want)
	}
}
