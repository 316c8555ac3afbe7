package wire

import (
	"encoding/binary"
	"fmt"
	"strconv"
)

// Message types that a client sends.
const (
	Bind         = 'B'
	Close        = 'C'
	CopyData     = 'd' // both ways
	CopyDone     = 'c' // both ways
	CopyFail     = 'f'
	Describe     = 'D'
	Execute      = 'E'
	Flush        = 'H'
	FunctionCall = 'F'
	Parse        = 'P'
	Password     = 'p' // and SASL, GSS answers
	Query        = 'Q'
	Sync         = 'S'
	Terminate    = 'X'
)

// Message types that a server sends.
const (
	Authentication           = 'R'
	BackendKeyData           = 'K'
	BindComplete             = '2'
	CloseComplete            = '3'
	CommandComplete          = 'C'
	CopyBothResponse         = 'W'
	CopyInResponse           = 'G'
	CopyOutResponse          = 'H'
	DataRow                  = 'D'
	EmptyQueryResponse       = 'I'
	ErrorResponse            = 'E'
	FunctionCallResponse     = 'V'
	NegotiateProtocolVersion = 'v'
	NoData                   = 'n'
	NoticeResponse           = 'N'
	NotificationResponse     = 'A'
	ParameterDescription     = 't'
	ParameterStatus          = 'S'
	ParseComplete            = '1'
	PortalSuspended          = 's'
	ReadyForQuery            = 'Z'
	RowDescription           = 'T'
)

// HeaderLen is the size of a message's type and length.
const HeaderLen = 5

// maxMessage is the largest length word that Postgres itself would send or take
// (MaxAllocSize, 1 GiB - 1): anything above is not the protocol.
const maxMessage = 0x3fffffff

// Header reads a message's header. total is the message's whole size in bytes,
// header included; ok is false where the length is none that Postgres could mean.
// src must hold HeaderLen bytes.
func Header(src []byte) (typ byte, total int, ok bool) {
	n := binary.BigEndian.Uint32(src[1:5])
	return src[0], int(n) + 1, n >= 4 && n <= maxMessage
}

// CString returns the zero-terminated string at the start of src and what follows
// it.
func CString(src []byte) (s, rest []byte, err error) {
	for i, c := range src {
		if c == 0 {
			return src[:i], src[i+1:], nil
		}
	}
	return nil, nil, fmt.Errorf("string of %d bytes without its end", len(src))
}

// AppendMessage appends a whole message.
func AppendMessage(dst []byte, typ byte, body ...[]byte) []byte {
	n := 4
	for _, b := range body {
		n += len(b)
	}
	dst = append(dst, typ)
	dst = binary.BigEndian.AppendUint32(dst, uint32(n))
	for _, b := range body {
		dst = append(dst, b...)
	}
	return dst
}

// ErrorFields are the fields of an ErrorResponse that pgaccel fills itself.
type ErrorFields struct {
	Severity string // ERROR, FATAL
	Code     string // SQLSTATE
	Message  string
	Detail   string
	Hint     string
	Position int // in the client's text, from 1; 0 for none
	File     string
	Line     string
	Routine  string
}

// AppendError appends an ErrorResponse with its fields in Postgres' order.
func AppendError(dst []byte, f ErrorFields) []byte { return appendFields(dst, ErrorResponse, f) }

// AppendNotice appends a NoticeResponse, likewise.
func AppendNotice(dst []byte, f ErrorFields) []byte { return appendFields(dst, NoticeResponse, f) }

func appendFields(dst []byte, typ byte, f ErrorFields) []byte {
	start := len(dst)
	dst = append(dst, typ, 0, 0, 0, 0)
	field := func(code byte, v string) {
		if v != "" {
			dst = append(append(append(dst, code), v...), 0)
		}
	}
	field('S', f.Severity)
	field('V', f.Severity)
	field('C', f.Code)
	field('M', f.Message)
	field('D', f.Detail)
	field('H', f.Hint)
	if f.Position > 0 {
		field('P', strconv.Itoa(f.Position))
	}
	field('F', f.File)
	field('L', f.Line)
	field('R', f.Routine)
	dst = append(dst, 0)
	binary.BigEndian.PutUint32(dst[start+1:], uint32(len(dst)-start-1))
	return dst
}

// ErrorField returns one field of the body of an ErrorResponse or NoticeResponse,
// nil where it has none.
func ErrorField(body []byte, code byte) []byte {
	for len(body) > 0 && body[0] != 0 {
		v, rest, err := CString(body[1:])
		if err != nil {
			return nil
		}
		if body[0] == code {
			return v
		}
		body = rest
	}
	return nil
}
