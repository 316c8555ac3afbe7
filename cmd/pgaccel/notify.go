package main

import (
	"net"
	"os"
)

// notifyReady tells the service manager that clients are served, where one asks for it: a systemd unit of
// Type=notify names a datagram socket in NOTIFY_SOCKET (sd_notify(3)).
func notifyReady() error {
	address := os.Getenv("NOTIFY_SOCKET") // an abstract one begins with @, as package net has it
	if address == "" {
		return nil
	}
	conn, err := net.Dial("unixgram", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Write([]byte("READY=1"))
	return err
}
