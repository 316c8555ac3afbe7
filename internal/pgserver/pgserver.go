package pgserver

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"pgaccel/internal/subprocess"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Options chooses the server to start. The zero value starts the newest
// installed major with settings for tests.
type Options struct {
	BinDir   string            // folder of initdb and postgres; "" looks for one (FindBinDir)
	Dir      string            // where the data goes; "" makes a temporary folder that Stop removes
	Settings map[string]string // postgresql.conf, over the defaults below
	HBA      string            // pg_hba.conf; "" trusts 127.0.0.1 and the socket, replication included
	InitArgs []string          // more arguments to initdb, such as --locale-provider
	Locale   string            // "" is C
}

// Server is a running server.
type Server struct {
	Port      int
	Dir       string // data directory's parent; also holds the socket and log
	DataDir   string
	SocketDir string
	BinDir    string

	cmd       *exec.Cmd
	exited    chan struct{}
	temporary bool
	cred      *syscall.Credential
}

// FindBinDir returns the folder of the newest installed PostgreSQL server's
// programs: $PGACCEL_PG_BINDIR, /usr/lib/postgresql/*/bin, or where initdb is on
// PATH.
func FindBinDir() (string, error) {
	if d := os.Getenv("PGACCEL_PG_BINDIR"); d != "" {
		return d, nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	slices.SortFunc(found, func(a, b string) int { return major(b) - major(a) })
	if len(found) > 0 {
		return filepath.Dir(found[0]), nil
	}
	if p, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(p), nil
	}
	return "", fmt.Errorf("no PostgreSQL server found: install one (apt-get install postgresql) or set PGACCEL_PG_BINDIR")
}

func major(initdb string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(initdb))))
	return n
}

// Start runs initdb where needed and starts the server; it returns once the
// server accepts connections.
func Start(ctx context.Context, o Options) (*Server, error) {
	var err error
	if o.BinDir == "" {
		if o.BinDir, err = FindBinDir(); err != nil {
			return nil, err
		}
	}
	s := &Server{BinDir: o.BinDir, Dir: o.Dir, exited: make(chan struct{})}
	if s.cred, err = unprivileged(); err != nil {
		return nil, err
	}
	if s.Dir == "" {
		if s.Dir, err = os.MkdirTemp("", "pgaccel-pg-"); err != nil {
			return nil, err
		}
		s.temporary = true
	}
	if err = os.MkdirAll(s.Dir, 0o755); err != nil {
		return nil, err
	}
	s.DataDir, s.SocketDir = filepath.Join(s.Dir, "data"), s.Dir
	if s.cred != nil {
		if err = os.Chown(s.Dir, int(s.cred.Uid), int(s.cred.Gid)); err != nil {
			return nil, err
		}
	}
	if _, err = os.Stat(filepath.Join(s.DataDir, "PG_VERSION")); err != nil {
		if err = s.initdb(ctx, o); err != nil {
			s.cleanup()
			return nil, err
		}
	}
	if err = s.run(ctx, o); err != nil {
		s.cleanup()
		return nil, err
	}
	return s, nil
}

// unprivileged returns the account to run as when we are root, because postgres
// refuses to run as root; nil otherwise.
func unprivileged() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			uid, _ := strconv.Atoi(u.Uid)
			gid, _ := strconv.Atoi(u.Gid)
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, fmt.Errorf("running as root, and neither user postgres nor nobody exists to run the server as")
}

func (s *Server) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(s.BinDir, name), args...)
	cmd.Dir = s.Dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC")
	// The server ends with us even when we are killed.
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred, Setpgid: true}
	return cmd
}

func (s *Server) initdb(ctx context.Context, o Options) error {
	locale := o.Locale
	if locale == "" {
		locale = "C"
	}
	args := append([]string{"-D", s.DataDir, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=" + locale, "-N"}, o.InitArgs...)
	if out, err := s.command(ctx, "initdb", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return nil
}

func (s *Server) run(ctx context.Context, o Options) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	s.Port = port
	conf := map[string]string{
		"listen_addresses": "'127.0.0.1'", "unix_socket_directories": "'" + s.SocketDir + "'",
		"wal_level": "logical", "max_wal_senders": "20", "max_replication_slots": "20", "max_connections": "300",
		"fsync": "off", "full_page_writes": "off", "shared_buffers": "256MB", "timezone": "'UTC'", "log_timezone": "'UTC'",
		"max_prepared_transactions": "20", "logging_collector": "off",
	}
	for k, v := range o.Settings {
		conf[k] = v
	}
	conf["port"] = strconv.Itoa(port)
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(conf)) {
		fmt.Fprintf(&b, "%s = %s\n", k, conf[k])
	}
	if err := os.WriteFile(filepath.Join(s.DataDir, "postgresql.auto.conf"), []byte(b.String()), 0o644); err != nil {
		return err
	}
	hba := o.HBA
	if hba == "" {
		hba = "local all all trust\nlocal replication all trust\nhost all all 127.0.0.1/32 trust\nhost replication all 127.0.0.1/32 trust\n"
	}
	if err := os.WriteFile(filepath.Join(s.DataDir, "pg_hba.conf"), []byte(hba), 0o644); err != nil {
		return err
	}
	logName := filepath.Join(s.Dir, "postgres.log")
	log, err := os.OpenFile(logName, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd = s.command(context.Background(), "postgres", "-D", s.DataDir)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := subprocess.Start(s.cmd, syscall.SIGQUIT); err != nil {
		return err
	}
	go func() { s.cmd.Wait(); close(s.exited) }()
	for {
		if s.accepts() {
			return nil
		}
		select {
		case <-s.exited:
			text, _ := os.ReadFile(logName)
			return fmt.Errorf("postgres ended at start:\n%s", bytes.TrimSpace(text))
		case <-ctx.Done():
			s.cmd.Process.Signal(syscall.SIGQUIT)
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// accepts reports whether the server takes connections, as pg_isready does, which is
// a client program and not in every server's folder: any answer to a startup message
// will do but the error that it cannot connect now.
func (s *Server) accepts() bool {
	c, err := net.Dial("unix", s.Socket())
	if err != nil {
		return false
	}
	defer c.Close()
	const parameters = "user\x00postgres\x00database\x00postgres\x00\x00"
	startup := binary.BigEndian.AppendUint32(nil, uint32(8+len(parameters)))
	startup = append(binary.BigEndian.AppendUint32(startup, 3<<16), parameters...)
	c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.Write(startup); err != nil {
		return false
	}
	answer := make([]byte, 1024)
	n, err := c.Read(answer)
	return err == nil && !(answer[0] == 'E' && bytes.Contains(answer[:n], []byte("57P03")))
}

// Socket is the path of the server's Unix socket.
func (s *Server) Socket() string {
	return filepath.Join(s.SocketDir, ".s.PGSQL."+strconv.Itoa(s.Port))
}

// URL returns a connection string for the user and database, over TCP.
func (s *Server) URL(user, database string) string {
	return fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s?sslmode=disable", user, s.Port, database)
}

// PID is the postmaster's process id.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Stop ends the server at once ("immediate": its data is thrown away, or
// recovered at the next start) and removes its folder where Start made it.
func (s *Server) Stop() {
	s.stop(syscall.SIGQUIT)
	s.cleanup()
}

// Shutdown ends the server cleanly ("fast"), keeping its folder.
func (s *Server) Shutdown() { s.stop(syscall.SIGINT) }

func (s *Server) stop(sig syscall.Signal) {
	if s.cmd == nil || s.cmd.Process == nil {
		return
	}
	s.cmd.Process.Signal(sig)
	select {
	case <-s.exited:
	case <-time.After(20 * time.Second):
		s.cmd.Process.Kill()
		<-s.exited
	}
}

func (s *Server) cleanup() {
	if s.temporary {
		os.RemoveAll(s.Dir)
	}
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
