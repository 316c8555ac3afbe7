// Package upstream opens connections to the real Postgres: where it is, how its
// side is encrypted, and how a cancel request reaches it. What travels on a
// connection is the proxy's business.
package upstream
