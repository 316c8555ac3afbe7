package proxy

import (
	"maps"
	"net"
	"slices"

	"pgaccel/engine"
	"pgaccel/upstream"
	"pgaccel/wire"
)

// Database is where the sessions go that ask for it.
type Database struct {
	Upstream upstream.Config
	// Name is what its server calls it, which the startup packet is changed to; "" is what clients call it.
	Name string
	// Engine decides what is accelerated; nil relays everything without looking.
	Engine engine.Decider
}

// invalidCatalogName is the SQLSTATE of a database that is not there.
const invalidCatalogName = "3D000"

// databaseOf returns where a client goes by its startup packet, nil where there is no such database, and the packet that is
// sent there. Of one that cannot be read the default database's server says what is wrong.
func (s *Server) databaseOf(packet []byte) (*Database, []byte) {
	list, err := wire.StartupParameters(packet)
	if err != nil {
		return s.cfg.Default, packet
	}
	var i sessionInfo
	i.startup(list)
	d := s.cfg.Databases[i.database]
	switch {
	case d == nil:
		return s.cfg.Default, packet
	case d.Name == "" || d.Name == i.database:
		return d, packet
	}
	return d, wire.WithDatabase(packet, list, d.Name)
}

// noDatabase says so to a client, as PostgreSQL does to those that it has let in.
func noDatabase(conn net.Conn, packet []byte) {
	var i sessionInfo
	if list, err := wire.StartupParameters(packet); err == nil {
		i.startup(list)
	}
	fatal(conn, invalidCatalogName, `database "`+i.database+`" does not exist`)
}

// servers are the databases' servers, each once.
func (s *Server) servers() []*upstream.Config {
	var list []*upstream.Config
	known := map[string]bool{}
	for _, d := range append(slices.Collect(maps.Values(s.cfg.Databases)), s.cfg.Default) {
		if d == nil {
			continue
		}
		if at := d.Upstream.Endpoints[0].Address; !known[at] {
			known[at] = true
			list = append(list, &d.Upstream)
		}
	}
	return list
}
