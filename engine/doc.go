// Package engine takes one query through its life: decide whether it can be
// answered from columns, say what the gate must ask the client's own Postgres
// session, check the gate's answer, execute, or say why not. It sees no bytes of
// the wire: package proxy does the talking.
package engine
