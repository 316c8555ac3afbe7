package advise

import (
	"testing"

	"pgaccel/plan"
)

// What TestRoutesAreTaken has of this package's tests: it runs a server, which imports this package.

// RoutesDatabase makes a database that StatementRoutes are over, and returns its URL.
func RoutesDatabase(t *testing.T) string {
	return database(t, postgres, shop+"ANALYZE sales, customers, secret, parts; DROP TABLE scratch, nokey")
}

// StatementRoutes calls f with statements, and the route and the reason that are said of each.
func StatementRoutes(f func(sql, route string, reason plan.Reason)) {
	for sql, want := range statementRoutes {
		f(sql, string(want.route), want.reason)
	}
}
