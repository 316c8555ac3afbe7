package engine

import (
	"slices"
	"sync"

	"pgaccel/catalog"
	"pgaccel/plan"
	"pgaccel/syntax"
	"pgaccel/vector"
)

// Where several schemas have a table of one name (one schema a tenant), a name without a schema means that of the session's
// search_path. A statement is planned for each such path that sessions have shown, the first time as if it were
// public alone. A path is known from a session's first gate on, which says what the names mean, whatever was supposed.

// pathsMax bounds the paths under which a statement's decisions are kept: beyond, they are all made anew.
const pathsMax = 256

// elsewhere has the decisions on a statement under search_paths, of one catalog.
type elsewhere struct {
	catalog *catalog.Catalog
	mu      sync.Mutex
	made    map[string]*decision
}

// under returns the decision under a search_path; d is that under none.
func (s *statement) under(schemas string, d *decision) *decision {
	if d.forward == nil && !slices.ContainsFunc(d.deps.Tables, ofNoSchema) && !slices.ContainsFunc(d.deps.Views, ofNoSchema) {
		return d
	}
	other := s.elsewhere.Load()
	if other == nil || other.catalog != d.catalog {
		other = &elsewhere{catalog: d.catalog, made: map[string]*decision{}}
		s.elsewhere.Store(other)
	}
	other.mu.Lock()
	defer other.mu.Unlock()
	if made := other.made[schemas]; made != nil {
		return made
	}
	members, ok := plan.ArrayMembers(schemas, vector.TypeOf(vector.Text))
	if !ok {
		return d
	}
	cat := *d.catalog
	for _, m := range members {
		cat.SearchPath = append(cat.SearchPath, m.Str)
	}
	made := s.decisionOn(&cat, syntax.ParsePart(s.sql))
	made.catalog = d.catalog
	if made.unforced != nil {
		made.unforced.catalog = d.catalog
	}
	if len(other.made) == pathsMax {
		clear(other.made)
	}
	other.made[schemas] = made
	return made
}

// ofNoSchema reports whether a reference names no schema.
func ofNoSchema(t plan.Table) bool {
	return t.Ref == catalog.QuoteIdentifier(t.Meta.Name)
}
