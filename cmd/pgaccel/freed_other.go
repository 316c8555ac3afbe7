//go:build !linux

package main

// freeLazily is for Linux.
func freeLazily() {}
