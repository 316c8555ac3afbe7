//go:build !linux

package proxy

import (
	"net"

	"pgaccel/upstream"
)

// loop exists on Linux only.
type loop struct{}

func (s *Server) driveEvents(*session, net.Conn, net.Conn, upstream.Endpoint, func()) bool {
	return false
}

func (s *Server) stopLoops() {}
