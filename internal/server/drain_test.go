package server

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"pgaccel/proxy"
	"pgaccel/upstream"
)

// TestDrainWaitsForNoRequest: a request of HTTP that does not end holds up no client's session.
func TestDrainWaitsForNoRequest(t *testing.T) {
	up, err := upstream.ParseConfig("postgres://me@127.0.0.1:1/x?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{cfg: Config{ReusePort: true}}
	if s.proxy, err = proxy.Listen(t.Context(), proxy.Config{Listen: []string{"127.0.0.1:0"}, Default: &proxy.Database{Upstream: up}, Logger: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	begun, end := make(chan bool), make(chan bool)
	s.http = newHTTPServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { begun <- true; <-end }), time.Minute)
	defer s.http.Close()
	defer close(end)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.http.Serve(l)
	go http.Get("http://" + l.Addr().String())
	<-begun
	drained := make(chan error, 1)
	go func() { drained <- s.Drain(context.Background()) }()
	select {
	case err := <-drained:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the drain waits for a request")
	}
}
