//go:build !linux

package main

// keepFreed is for Linux.
func keepFreed() {}
