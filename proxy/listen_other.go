//go:build !linux

package proxy

import "errors"

func reusePort(int) error   { return errors.New("--reuse-port is for Linux") }
func turnToOther(int) error { return nil }
func turnBack(int) error    { return nil }
