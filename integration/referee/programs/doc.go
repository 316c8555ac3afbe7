// Command programs runs the referee's concurrency and fault programs: each drives a
// real server by many sessions, direct ones and ones through pgaccel mixed, and
// checks what no comparison of single answers can, that all sessions together see
// one database.
//
//	fence      read your writes, also those of others: what was acknowledged, or seen
//	           by anybody, is seen by every later read; each session never goes back
//	mirror     one snapshot: within a REPEATABLE READ transaction the accelerated
//	           answers are exactly those that Postgres itself gives
//	append     lists that transactions append to and read; the dependencies between
//	           the transactions must have no cycle that snapshot isolation forbids
//	skew       SERIALIZABLE fails as it does without pgaccel
//	ddl-chaos  schema changes of every kind, under load, leave Postgres' answer
//	catalog    operators, casts, functions, types and schemas made, renamed, granted and
//	           dropped in overlapping transactions leave Postgres' answer
//	memory     portals left open, slow readers, messages in part and huge ones, many
//	           sessions: the process keeps below a bound, and holds nothing at the end
//	faults     fence, mirror and append together while processes are killed, streams
//	           cut, disks filled
//	restore    mirror, with a data directory, while older copies of the server's files,
//	           base backups and older copies of the data directory are put back
//
// How it fits together:
//
//	writers, readers (fence.go, mirror.go, append.go, skew.go, chaos.go, catalog.go)
//	   |            |
//	   |  direct    | through pgaccel     session.go
//	   |            v
//	   |         pgaccel                  world.go
//	   |            | link: delayed, cut  link.go
//	   v            v
//	   Postgres                           nemesis.go, restore.go break all three
//
// A program that forwards every read proves nothing, so that each demands a share
// of accelerated reads, as /metrics counts them. A violation ends the run with exit
// status 1, the seed and the last events of all sessions (history.go). That the
// checkers can fail is tested with recorded histories and with answers that are
// wrong on purpose (liar_test.go).
//
// The tests run each program for some seconds with a fixed seed. For minutes:
//
//	go run ./integration/referee/programs -d 30m -only mirror -seed 7
package main
