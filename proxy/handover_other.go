//go:build !linux

package proxy

import (
	"context"
	"errors"
	"net"
)

func listenShared(context.Context, string) (net.Listener, error) {
	return nil, errors.New("--reuse-port is for Linux")
}
