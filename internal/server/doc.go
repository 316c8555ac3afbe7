// Package server wires the parts of pgaccel together: the stores, the replicators
// that fill them, the engines that read them, the proxy in front, and the HTTP side
// (metrics, health, the console).
//
// With auto among the patterns of a database, a goroutine has the tables copied that statements need (auto.go).
//
// # Columns of devices
//
// A goroutine of each database notes which columns devices have, and brings them to a device that comes (prewarm.go). With a data
// directory the list is there, in the file prewarm:
//
//	"pgaccel prewarm 1\n"
//	32 bytes  SHA-256 of what follows
//	JSON      [{"table": "public.sales", "column": "price"}, {"table": .., "column": .., "strings": true}, ..]
//
// # Several databases
//
// Clients choose a database by the name in their startup message. One that has an entry in Config.Databases goes to that
// entry's server and database; all other names go to Config.Upstream's server, under the name that the client gave, or are refused
// (3D000) where there is none.
//
//	of the process   listeners, TLS, admission, HTTP, console; cores, query memory and kept results (engine.Shared); column
//	                 memory (colstore.Memory), temporary files, devices
//	of a database    upstream, store, replicator (publication, slot, data directory), engine (plans, routing, the schema
//	                 pgaccel): type database
//
// Stores are separate, since OIDs of tables are a database's own: databases that are made of one template have equal ones. Their columns
// lie in one memory file under one limit, and the numbers of columns (colstore.NewID) are the process's, so that a device
// maps one file, and keeps columns of all databases beside each other.
//
// Publications and slots have random names (package replica), and so do not collide on one server. Sessions are cancelled by the keys
// that their servers gave them.
package server
