package pgserver

import (
	"context"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestStartAnswersAndStops(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := Start(ctx, Options{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("psql", "-h", s.SocketDir, "-p", strconv.Itoa(s.Port),
		"-U", "postgres", "-Atc", "show wal_level").CombinedOutput()
	if got := strings.TrimSpace(string(out)); err != nil || got != "logical" {
		t.Errorf("show wal_level: %q, %v", got, err)
	}
	s.Stop()
	if s.accepts() {
		t.Error("the server still answers after Stop")
	}
}
