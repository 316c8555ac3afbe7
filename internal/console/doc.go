// Package console is what people see of pgaccel in a browser, under /console/: which statements are faster and by how much,
// what the others lack, tables, the stream, sessions, and one statement answered by both sides.
//
// It has two sources. The metrics, as a scrape of /metrics has them, are sampled into a ring and shown as curves; where the
// listener is on loopback they need no login, as /metrics needs none. All else are the relations of the schema pgaccel, read
// by SQL through pgaccel's own port in a session of the role that has logged in, so that the rules of who sees what are
// PostgreSQL's and the engine's alone. A login is one connection, which is kept; the password is not.
//
// What is sent to browsers is in assets: one page, ES modules and a style sheet as they are written, and uPlot for curves.
// Nothing is loaded from elsewhere, which the Content-Security-Policy enforces, and no HTML is made from text: nodes
// are made by assets/dom.js.
package console
