// Package server wires the parts of pgaccel together: the store, the replicator
// that fills it, the engine that reads it, the proxy in front, and the HTTP side
// (metrics, health, the console).
package server
