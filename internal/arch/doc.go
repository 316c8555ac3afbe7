// Package arch holds the project's architecture as tests: which package may
// import which, and other habits that a machine can check.
package arch
