package wire

import (
	"bytes"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

func TestHeader(t *testing.T) {
	f := func(src string, total int, ok bool) {
		t.Helper()
		typ, n, valid := Header([]byte(src))
		if valid != ok || ok && (typ != src[0] || n != total) {
			t.Errorf("Header(%q) = %c, %d, %v", src, typ, n, valid)
		}
	}
	f("Z\x00\x00\x00\x05", 6, true)
	f("S\x00\x00\x00\x04", 5, true)
	f("D\x3f\xff\xff\xff", maxMessage+1, true)
	f("D\x40\x00\x00\x00", 0, false)
	f("Q\x00\x00\x00\x03", 0, false)
	f("Q\xff\xff\xff\xff", 0, false)
}

// TestErrorIsPostgres compares our ErrorResponse with pgproto3's reading of it.
func TestErrorIsPostgres(t *testing.T) {
	b := AppendError([]byte("before"), ErrorFields{Severity: "ERROR", Code: "57014", Message: "m", Detail: "d", Hint: "h", File: "f", Line: "12", Routine: "r"})
	b = b[len("before"):]
	typ, total, ok := Header(b)
	if typ != ErrorResponse || !ok || total != len(b) {
		t.Fatalf("header %c, %d of %d", typ, total, len(b))
	}
	var e pgproto3.ErrorResponse
	if err := e.Decode(b[HeaderLen:]); err != nil {
		t.Fatal(err)
	}
	if e.Severity != "ERROR" || e.SeverityUnlocalized != "ERROR" || e.Code != "57014" || e.Message != "m" || e.Detail != "d" || e.Hint != "h" || e.File != "f" || e.Line != 12 || e.Routine != "r" {
		t.Errorf("%+v", e)
	}
	again, err := e.Encode(nil)
	if err != nil || !bytes.Equal(again, b) {
		t.Errorf("pgproto3 writes %q, we %q", again, b)
	}
	if c := ErrorField(b[HeaderLen:], 'C'); string(c) != "57014" {
		t.Errorf("code %q", c)
	}
	if c := ErrorField(b[HeaderLen:], 'W'); c != nil {
		t.Errorf("no such field: %q", c)
	}
}

func TestStartup(t *testing.T) {
	for _, n := range []byte{0, 7} {
		if _, err := StartupLength([]byte{0, 0, 0, n}); !errors.Is(err, errStartupLength) {
			t.Errorf("length %d: %v", n, err)
		}
	}
	if n, err := StartupLength([]byte{0, 0, 39, 16}); n != MaxStartupPacket || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	p := AppendStartup(nil, Version30, []byte("user\x00me\x00options\x00-c a=b\x00user\x00you\x00\x00"))
	list, err := StartupParameters(p)
	if err != nil || len(list) != 3 || list[0] != (StartupParameter{"user", "me"}) || list[2].Value != "you" {
		t.Errorf("%v, %v", list, err)
	}
	for _, bad := range []string{"", "user", "user\x00", "user\x00me\x00", "user\x00me\x00\x00x"} {
		if list, err := StartupParameters(AppendStartup(nil, Version30, []byte(bad))); err == nil {
			t.Errorf("%q: %v", bad, list)
		}
	}
	for n, ok := range map[int]bool{15: false, 16: true, 268: true, 269: false} {
		if _, err := CancelKey(make([]byte, n)); (err == nil) != ok {
			t.Errorf("cancel request of %d bytes: %v", n, err)
		}
	}
}

func FuzzFraming(f *testing.F) {
	f.Add([]byte("Z\x00\x00\x00\x05I"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for len(b) >= HeaderLen {
			typ, total, ok := Header(b)
			if !ok || total > len(b) {
				return
			}
			if total < HeaderLen {
				t.Fatalf("message of %d bytes", total)
			}
			body := b[HeaderLen:total]
			if again := AppendMessage(nil, typ, body); !bytes.Equal(again, b[:total]) {
				t.Fatalf("%q became %q", b[:total], again)
			}
			if s, rest, err := CString(body); err == nil && len(s)+1+len(rest) != len(body) {
				t.Fatalf("string %q, rest %q of %q", s, rest, body)
			}
			ErrorField(body, 'C')
			b = b[total:]
		}
	})
}

func FuzzStartup(f *testing.F) {
	f.Add(AppendStartup(nil, Version30, []byte("user\x00me\x00\x00")))
	f.Add(AppendStartup(nil, CancelRequestCode, make([]byte, 8)))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 8 {
			return
		}
		StartupLength(b)
		StartupCode(b)
		CancelKey(b)
		list, err := StartupParameters(b)
		if err == nil {
			n := 9
			for _, p := range list {
				n += len(p.Name) + len(p.Value) + 2
			}
			if n != len(b) {
				t.Fatalf("%d bytes read as %d: %v", len(b), n, list)
			}
		}
	})
}
