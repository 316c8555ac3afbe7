package proxy

import (
	"encoding/binary"
	"math"
	"strconv"

	"pgaccel/engine"
	"pgaccel/wire"
)

// Names of pgaccel's own statements and portal in a session. They exist on the
// client's upstream connection, where a client could see them, but not collide with
// them by chance.
const (
	queryName   = "pgaccel_query"
	cancelName  = "pgaccel_cancel"
	commandName = "pgaccel_wrap"
	// constantsName is that of what the server computes for the statement at hand.
	constantsName = "pgaccel_constants"
)

// gateNames are those of the forms of the gate.
var gateNames = [engine.GateForms]string{engine.GateFull: "pgaccel_gate", engine.GatePlain: "pgaccel_gate_plain"}

// cancelSQL makes the server cancel its own statement: the error, and the state that
// the transaction is in afterwards, are Postgres' own.
const cancelSQL = "SELECT pg_catalog.pg_cancel_backend(pg_catalog.pg_backend_pid()), pg_catalog.pg_sleep(5)"

func appendCString(dst []byte, s string) []byte { return append(append(dst, s...), 0) }

// seal fills in the length of the message that open has begun at start.
func seal(dst []byte, start int) []byte {
	binary.BigEndian.PutUint32(dst[start+1:], uint32(len(dst)-start-1))
	return dst
}

// open begins a message; seal ends it.
func open(dst []byte, typ byte) []byte { return append(dst, typ, 0, 0, 0, 0) }

func appendQuery(dst []byte, sql string) []byte {
	start := len(dst)
	return seal(appendCString(open(dst, wire.Query), sql), start)
}

func appendParse(dst []byte, name, sql string, oids []uint32) []byte {
	start := len(dst)
	dst = appendCString(appendCString(open(dst, wire.Parse), name), sql)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(oids)))
	for _, o := range oids {
		dst = binary.BigEndian.AppendUint32(dst, o)
	}
	return seal(dst, start)
}

// appendBind binds values in text format; results come as text.
func appendBind(dst []byte, portal, statement string, values []string) []byte {
	return appendBindAs(dst, portal, statement, values, nil, nil, nil)
}

// appendBindAs binds values, but for those that are null, which is nil for none, in formats: none, or
// one each. Results come in those of results: none, or one for all.
func appendBindAs[V string | []byte](dst []byte, portal, statement string, values []V, null []bool, formats, results []int16) []byte {
	start := len(dst)
	dst = appendCString(appendCString(open(dst, wire.Bind), portal), statement)
	shorts := func(list []int16) {
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(list)))
		for _, f := range list {
			dst = binary.BigEndian.AppendUint16(dst, uint16(f))
		}
	}
	shorts(formats)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(values)))
	for i, v := range values {
		size := uint32(len(v))
		if null != nil && null[i] {
			size = math.MaxUint32 // -1
		}
		dst = append(binary.BigEndian.AppendUint32(dst, size), v...)
	}
	shorts(results)
	return seal(dst, start)
}

func appendExecute(dst []byte, portal string, rows int32) []byte {
	start := len(dst)
	dst = binary.BigEndian.AppendUint32(appendCString(open(dst, wire.Execute), portal), uint32(rows))
	return seal(dst, start)
}

// appendNamed appends Describe or Close of a statement ('S') or portal ('P').
func appendNamed(dst []byte, typ, kind byte, name string) []byte {
	start := len(dst)
	return seal(appendCString(append(open(dst, typ), kind), name), start)
}

func appendEmpty(dst []byte, typ byte) []byte { return append(dst, typ, 0, 0, 0, 4) }

func appendTag(dst []byte, command string, rows int) []byte {
	start := len(dst)
	dst = strconv.AppendInt(append(open(dst, wire.CommandComplete), command...), int64(rows), 10)
	return seal(append(dst, 0), start)
}

// appendPlainTag is appendTag for a command that does not say how many rows there were.
func appendPlainTag(dst []byte, command string) []byte {
	start := len(dst)
	return seal(appendCString(open(dst, wire.CommandComplete), command), start)
}

func appendReady(dst []byte, status byte) []byte {
	return append(dst, wire.ReadyForQuery, 0, 0, 0, 5, status)
}

// readRow reads the body of a DataRow in text format.
func readRow(b []byte) (row []*string, ok bool) {
	if len(b) < 2 {
		return nil, false
	}
	n := int(binary.BigEndian.Uint16(b))
	b = b[2:]
	for ; n > 0; n-- {
		if len(b) < 4 {
			return nil, false
		}
		size := int32(binary.BigEndian.Uint32(b))
		b = b[4:]
		if size < 0 {
			row = append(row, nil)
			continue
		}
		if int(size) > len(b) {
			return nil, false
		}
		v := string(b[:size])
		row = append(row, &v)
		b = b[size:]
	}
	return row, len(b) == 0
}
