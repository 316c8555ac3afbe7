package proxy

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// TestHandOverFromOneThatEnds: a process that ends after it was asked, and before it gave its listener, is not in the way.
func TestHandOverFromOneThatEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	name, err := offerOf(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, accepts := range []bool{true, false} {
		offer, err := net.ListenUnix("unix", name)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if accepts {
				conn, _ := offer.Accept()
				conn.Close()
			}
			offer.Close()
		}()
		l, err := Listener(t.Context(), path, true)
		if err != nil {
			t.Errorf("accepts %t: %v", accepts, err)
			continue
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestListenAtOnce: of processes that begin at the same time one opens the listener, and the others take it over.
func TestListenAtOnce(t *testing.T) {
	for range 20 {
		path := filepath.Join(t.TempDir(), "socket")
		var all sync.WaitGroup
		listeners := make([]net.Listener, 4)
		for i := range listeners {
			all.Go(func() {
				var err error
				if listeners[i], err = Listener(t.Context(), path, true); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if t.Failed() {
			return
		}
		for _, l := range listeners {
			all.Go(func() { l.Close() })
		}
		all.Wait()
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Fatalf("after all have closed: %v", err)
		}
	}
}

// TestListenWhileClosing: one that begins while the last one ends can be reached, by its file too.
func TestListenWhileClosing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	old, err := Listener(t.Context(), path, true)
	if err != nil {
		t.Fatal(err)
	}
	for range 300 {
		var closing sync.WaitGroup
		closing.Go(func() { old.Close() })
		next, err := Listener(t.Context(), path, true)
		if err != nil {
			t.Fatal(err)
		}
		closing.Wait()
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
		old = next
	}
	old.Close()
}

// TestOfferOf: a folder's file has one name however it is spelled, and another folder's has another.
func TestOfferOf(t *testing.T) {
	folder, other := t.TempDir(), t.TempDir()
	link := filepath.Join(other, "link")
	if err := os.Symlink(folder, link); err != nil {
		t.Fatal(err)
	}
	of := func(address string) string {
		name, err := offerOf(address)
		if err != nil {
			t.Fatal(err)
		}
		return name.Name
	}
	if of(folder+"/s") != of(link+"/s") || of(folder+"/s") == of(other+"/s") || of(folder+"/s") == of(folder+"/t") {
		t.Error("names of offers")
	}
	if _, err := Listener(t.Context(), filepath.Join(folder, "none", "s"), true); err == nil || !strings.Contains(err.Error(), syscall.ENOENT.Error()) {
		t.Error(err)
	}
}

// TestListenSpelledOtherwise: where the address is taken under another name, the error says what is to be the same.
func TestListenSpelledOtherwise(t *testing.T) {
	l, err := Listener(t.Context(), "127.0.0.1:0", true)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	path := filepath.Join(t.TempDir(), "socket")
	own, err := Listener(t.Context(), path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	for _, address := range []string{l.Addr().String(), path} {
		if _, err := Listener(t.Context(), address, true); err == nil || !strings.Contains(err.Error(), "address already in use; a pgaccel there") {
			t.Errorf("%s: %v", address, err)
		}
	}
}
