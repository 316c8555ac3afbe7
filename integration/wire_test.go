package integration

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// lockedBuffer collects a running program's output.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// wait waits until text occurs n times.
func (l *lockedBuffer) wait(t *testing.T, text string, n int) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for strings.Count(l.String(), text) < n {
		if time.Now().After(deadline) {
			t.Fatalf("waited for %d times %q, have:\n%s", n, text, l.String())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// sendCancel sends a CancelRequest and waits until the other side closes.
func sendCancel(ctx context.Context, tg target, pid uint32, key []byte) error {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", tg.port))
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(10 * time.Second))
	b := binary.BigEndian.AppendUint32(nil, uint32(12+len(key)))
	b = binary.BigEndian.AppendUint32(b, 80877102)
	b = binary.BigEndian.AppendUint32(b, pid)
	if _, err := c.Write(append(b, key...)); err != nil {
		return err
	}
	answer, err := io.ReadAll(c)
	if len(answer) > 0 {
		return fmt.Errorf("a cancel request was answered: %q", answer)
	}
	return err
}
