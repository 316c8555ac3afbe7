package proxy

import (
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"pgaccel/engine"
	"pgaccel/internal/trace"
)

// The slow-query log (Settings.SlowQueryLog) has a line for each statement of a client's that took at least so long, accelerated or
// forwarded, as PostgreSQL's log_min_duration_statement has: a Query of several statements is one, and so is each Execute. Those
// that end with an error are in it, too. Values of clients are not: texts are shown as pgaccel.queries shows them.

// slowLines bounds the statements that wait to be written; more are counted only.
const slowLines = 1024

// statementLog writes the lines of all sessions, and ends the spans of their statements, behind their backs: the text of a statement
// that was relayed without a look is parsed for that.
type statementLog struct {
	log    *slog.Logger
	least  atomic.Int64  // nanoseconds that a statement has to take; negative logs none
	tracer *trace.Tracer // nil for none
	wg     *sync.WaitGroup

	mu      sync.Mutex
	lines   []slowLine
	lost    int // lines there was no room for
	writing bool
}

// slowOff is a least time that nothing takes.
const slowOff = -1

// slowLine is a statement that has ended, and of whose session it was.
type slowLine struct {
	observed
	engine                      engine.Watcher // of its database; nil for none: then the text is not known
	took                        time.Duration
	logged                      bool // else it is for its span alone
	user, database, application string
	pid                         int32
}

// enabled reports whether statements are to be observed.
func (l *statementLog) enabled() bool { return l != nil && (l.least.Load() >= 0 || l.tracer != nil) }

// add has a line written, soon.
func (l *statementLog) add(line slowLine) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) >= slowLines {
		l.lost++
		return
	}
	if l.lines = append(l.lines, line); !l.writing {
		l.writing = true
		l.wg.Go(l.write)
	}
}

// write writes the lines that there are.
func (l *statementLog) write() {
	for {
		l.mu.Lock()
		lines, lost := l.lines, l.lost
		l.lines, l.lost = nil, 0
		l.writing = len(lines) > 0
		l.mu.Unlock()
		if len(lines) == 0 {
			return
		}
		for i := range lines {
			l.writeLine(&lines[i])
		}
		if lost > 0 {
			l.log.Warn("statements end faster than they can be logged or traced: some are left out", "statements", lost)
		}
	}
}

func (l *statementLog) writeLine(line *slowLine) {
	defer func() {
		if p := recover(); p != nil {
			l.log.Error("a statement could not be logged or traced", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	text, why := line.shape(line.engine)
	if line.reason == "" && line.route != routeAccelerated {
		line.reason = why
	}
	line.span.EndStatement(line.began.Add(line.took), trace.Outcome{Query: text, Command: line.command, Database: line.database, Route: line.route, Reason: string(line.reason),
		SQLState: line.code, Rows: line.rows, PID: line.pid})
	if !line.logged {
		return
	}
	list := []any{"query", text, "route", line.route}
	if line.reason != "" {
		list = append(list, "reason", string(line.reason))
	}
	list = append(list, "duration", line.took)
	if line.code != "" {
		list = append(list, "sqlstate", line.code)
	} else {
		list = append(list, "rows", line.rows)
	}
	if line.command != "" {
		list = append(list, "command", line.command)
	}
	list = append(list, "user", line.user, "database", line.database)
	if line.application != "" {
		list = append(list, "application_name", line.application)
	}
	l.log.Info("slow query", append(list, "server_pid", line.pid)...)
}
