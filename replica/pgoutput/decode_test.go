package pgoutput

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// build makes a message: strings end in a zero, integers have their own size.
func build(kind Kind, fields ...any) []byte {
	b := []byte{byte(kind)}
	for _, f := range fields {
		switch f := f.(type) {
		case string:
			b = append(append(b, f...), 0)
		case []byte:
			b = append(b, f...)
		case byte:
			b = append(b, f)
		case Tuple:
			b = binary.BigEndian.AppendUint16(b, uint16(len(f)))
			for _, v := range f {
				if b = append(b, byte(v.Kind)); v.Kind == ValueText || v.Kind == ValueBinary {
					b = append(binary.BigEndian.AppendUint32(b, uint32(len(v.Data))), v.Data...)
				}
			}
		default:
			b, _ = binary.Append(b, binary.BigEndian, f)
		}
	}
	return b
}

func relation(xid []byte, oid uint32, name string, columns ...string) []byte {
	b := build(KindRelation, xid, oid, "public", name, byte('d'), uint16(len(columns)))
	for _, c := range columns {
		b = append(b, build(Kind(1), c, uint32(25), int32(-1))...)
	}
	return b
}

func row(values ...string) Tuple {
	var t Tuple
	for _, v := range values {
		switch v {
		case "n", "u":
			t = append(t, Value{Kind: ValueKind(v[0])})
		default:
			t = append(t, Value{Kind: ValueKind(v[0]), Data: []byte(v[1:])})
		}
	}
	return t
}

var none []byte

func xid(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }

// samples is a message of each kind, outside of streams and inside.
func samples() (outside, inside [][]byte) {
	outside = [][]byte{
		build(KindBegin, uint64(100), int64(5), uint32(7)), build(KindCommit, byte(0), uint64(100), uint64(120), int64(5)),
		build(KindOrigin, uint64(1), "elsewhere"),
		build(KindStreamStart, uint32(7), byte(1)), build(KindStreamStop), build(KindStreamAbort, uint32(7), uint32(8)),
		build(KindStreamAbort, uint32(7), uint32(8), uint64(1), int64(2)),
		build(KindStreamCommit, uint32(7), byte(0), uint64(100), uint64(120), int64(5)),
	}
	for i, x := range [][]byte{none, xid(9)} {
		list := [][]byte{
			relation(x, 16, "a", "id", "t"), build(KindType, x, uint32(1000), "public", "mood"),
			build(KindInsert, x, uint32(16), byte('N'), row("b1", "n")),
			build(KindUpdate, x, uint32(16), byte('N'), row("t1", "u")),
			build(KindUpdate, x, uint32(16), byte('K'), row("b1", "n"), byte('N'), row("b2", "b")),
			build(KindUpdate, x, uint32(16), byte('O'), row("b1", "tx"), byte('N'), row("b2", "u")),
			build(KindDelete, x, uint32(16), byte('K'), row("b1", "n")), build(KindDelete, x, uint32(16), byte('O'), row("b1", "n")),
			build(KindTruncate, x, uint32(2), byte(3), uint32(16), uint32(17)),
			build(KindMessage, x, byte(1), uint64(99), "prefix", uint32(3), []byte("hey")),
		}
		if i == 0 {
			outside = append(outside, list...)
		} else {
			inside = list
		}
	}
	return outside, inside
}

func TestFields(t *testing.T) {
	var d Decoder
	for _, c := range []struct {
		b        []byte
		inStream bool
		want     Message
	}{
		{build(KindBegin, uint64(100), int64(5), uint32(7)), false, Message{Kind: KindBegin, LSN: 100, Time: 5, XID: 7}},
		{build(KindStreamStart, uint32(7), byte(1)), false, Message{Kind: KindStreamStart, XID: 7, First: true}},
		{build(KindStreamCommit, uint32(7), byte(0), uint64(100), uint64(120), int64(5)), false, Message{Kind: KindStreamCommit, XID: 7, LSN: 100, EndLSN: 120, Time: 5}},
		{build(KindStreamAbort, uint32(7), uint32(8)), false, Message{Kind: KindStreamAbort, XID: 7, SubXID: 8}},
		{build(KindTruncate, xid(9), uint32(2), byte(3), uint32(16), uint32(17)), true, Message{Kind: KindTruncate, XID: 9, Cascade: true, Restart: true, OIDs: []uint32{16, 17}}},
		{build(KindMessage, byte(0), uint64(99), "p", uint32(3), []byte("hey")), false, Message{Kind: KindMessage, LSN: 99, Prefix: "p", Content: []byte("hey")}},
		{build(KindUpdate, xid(9), uint32(16), byte('O'), row("b1", "tx"), byte('N'), row("b2", "u")), true,
			Message{Kind: KindUpdate, XID: 9, OID: 16, OldKind: OldFull, Old: row("b1", "tx"), New: row("b2", "u")}},
		{build(KindDelete, uint32(16), byte('K'), row("b", "n")), false, Message{Kind: KindDelete, OID: 16, OldKind: OldKey, Old: Tuple{{ValueBinary, []byte{}}, {Kind: ValueNull}}}},
		{build(KindRelation, uint32(16), "", "a", byte('f'), uint16(1), byte(1), "id", uint32(23), int32(-1)), false,
			Message{Kind: KindRelation, Relation: &Relation{OID: 16, Name: "a", ReplicaIdentity: 'f', Columns: []Column{{Key: true, Name: "id", TypeOID: 23, Typmod: -1}}}}},
	} {
		got, err := d.Decode(c.b, c.inStream)
		if err != nil || !reflect.DeepEqual(*got, c.want) {
			t.Errorf("%q: %+v %v, want %+v", c.b, got, err, c.want)
		}
	}
}

func TestCorruptMessagesAreErrors(t *testing.T) {
	outside, inside := samples()
	var d Decoder
	for i, list := range [][][]byte{outside, inside} {
		for _, b := range list {
			if _, err := d.Decode(b, i == 1); err != nil {
				t.Errorf("%q: %v", b, err)
			}
			for cut := range len(b) {
				if kept := len(b) - cut; Kind(b[0]) == KindStreamAbort && cut == 9 && kept == 16 {
					continue // the shorter form
				}
				if _, err := d.Decode(b[:cut], i == 1); !errors.Is(err, errCorrupt) {
					t.Errorf("%q cut at %d: %v", b, cut, err)
				}
			}
			if Kind(b[0]) != KindStreamAbort {
				if _, err := d.Decode(append(bytes.Clone(b), 0), i == 1); !errors.Is(err, errCorrupt) {
					t.Errorf("%q with a byte more: %v", b, err)
				}
			}
		}
	}
	for _, b := range [][]byte{build('?'), build(KindInsert, uint32(1), byte('K'), row("n")), build(KindInsert, uint32(1), byte('N'), uint16(1), byte('?')),
		build(KindDelete, uint32(1), byte('N'), row("n")), build(KindInsert, uint32(1), byte('N'), uint16(1), byte('b'), int32(-1))} {
		if _, err := d.Decode(b, false); !errors.Is(err, errCorrupt) {
			t.Errorf("%q: %v", b, err)
		}
	}
	for _, kind := range "bPKrp" {
		if _, err := d.Decode(build(Kind(kind), uint64(1)), false); err == nil || !strings.Contains(err.Error(), "two_phase") {
			t.Errorf("%q: %v", kind, err)
		}
	}
}

// feed gives messages to an assembler and returns what its sink was told, with the
// rows, and the first error.
func feed(limit int, messages ...[]byte) (string, error) {
	w := &words{}
	a := NewAssembler(w, limit)
	for _, b := range messages {
		if err := a.Message(b); err != nil {
			return w.String(), err
		}
	}
	return w.String(), nil
}

// words is a sink that writes down what it is told.
type words struct{ strings.Builder }

func (w *words) say(format string, args ...any) error {
	if w.Len() > 0 {
		w.WriteByte(' ')
	}
	fmt.Fprintf(w, format, args...)
	return nil
}

func (t Tuple) String() string {
	var b strings.Builder
	for _, v := range t {
		fmt.Fprintf(&b, ",%c%s", v.Kind, v.Data)
	}
	return b.String()[min(1, b.Len()):]
}

func (w *words) Begin(xid uint32) error { return w.say("begin:%d", xid) }
func (w *words) Relation(rel *Relation) error {
	return w.say("relation:%s/%d", rel.Name, len(rel.Columns))
}
func (w *words) Insert(oid uint32, row Tuple) error {
	return w.say("insert:%d:%v", oid, row)
}
func (w *words) Update(oid uint32, old Tuple, kind OldKind, row Tuple) error {
	return w.say("update:%d:%d:%v:%v", oid, kind, old, row)
}
func (w *words) Delete(oid uint32, old Tuple, kind OldKind) error {
	return w.say("delete:%d:%d:%v", oid, kind, old)
}
func (w *words) Truncate(oids []uint32, cascade, restart bool) error {
	return w.say("truncate:%d:%v:%v", oids, cascade, restart)
}
func (w *words) Message(transactional bool, lsn uint64, prefix string, content []byte) error {
	return w.say("message:%v:%d:%s:%s", transactional, lsn, prefix, content)
}
func (w *words) TooLarge(xid uint32, oids []uint32) error {
	return w.say("large:%d:%d", xid, oids)
}
func (w *words) Commit(xid uint32, commitLSN, endLSN uint64) error {
	return w.say("commit:%d:%d:%d", xid, commitLSN, endLSN)
}

// Short forms of messages.
func beginMessage(x uint32) []byte { return build(KindBegin, uint64(1), int64(0), x) }
func commitMessage(at int) []byte {
	return build(KindCommit, byte(0), uint64(at), uint64(at+1), int64(0))
}
func insert(x []byte, s string) []byte {
	return build(KindInsert, x, uint32(16), byte('N'), row("t"+s))
}
func start(x uint32, first byte) []byte { return build(KindStreamStart, x, first) }
func abort(x, sub uint32) []byte        { return build(KindStreamAbort, x, sub) }
func streamCommit(x uint32, at int) []byte {
	return build(KindStreamCommit, x, byte(0), uint64(at), uint64(at+1), int64(0))
}

var stop = build(KindStreamStop)

func TestAssemblerOrdersAndDrops(t *testing.T) {
	for _, c := range []struct {
		name     string
		messages [][]byte
		want     string
	}{
		{"plain", [][]byte{beginMessage(5), relation(none, 16, "a", "t"), insert(none, "x"), insert(none, "y"), commitMessage(10),
			beginMessage(6), relation(none, 16, "a", "t"), insert(none, "z"), commitMessage(20)},
			"begin:5 relation:a/1 insert:16:tx insert:16:ty commit:5:10:11 begin:6 insert:16:tz commit:6:20:21"},
		{"streams interleave, and come in the order of their commits", [][]byte{
			start(7, 1), relation(xid(7), 16, "a", "t"), insert(xid(7), "1"), stop,
			start(8, 1), relation(xid(8), 16, "a", "t"), insert(xid(8), "2"), stop,
			beginMessage(9), relation(none, 16, "a", "t"), insert(none, "3"), commitMessage(10),
			start(7, 0), insert(xid(70), "4"), stop, streamCommit(8, 20), streamCommit(7, 30)},
			"begin:9 relation:a/1 insert:16:t3 commit:9:10:11 begin:8 insert:16:t2 commit:8:20:21 begin:7 insert:16:t1 insert:16:t4 commit:7:30:31"},
		{"subtransactions nest: an inner one was released, then the outer rolls back", [][]byte{
			start(7, 1), relation(xid(7), 16, "a", "t"), insert(xid(7), "1"), insert(xid(8), "2"), insert(xid(9), "3"), insert(xid(8), "4"), stop,
			abort(7, 9), abort(7, 8), abort(7, 10), start(7, 0), relation(xid(7), 16, "a", "t"), insert(xid(11), "5"), insert(xid(7), "6"), stop, streamCommit(7, 10)},
			"begin:7 relation:a/1 insert:16:t1 insert:16:t5 insert:16:t6 commit:7:10:11"},
		{"what a stream defines counts for all from its commit on, unless there is newer", [][]byte{
			start(7, 1), relation(xid(7), 16, "a", "t"), insert(xid(7), "1"), stop,
			start(8, 1), relation(xid(8), 17, "b", "t"), build(KindInsert, xid(8), uint32(17), byte('N'), row("t2")), stop,
			beginMessage(9), relation(none, 16, "a", "t", "u"), build(KindInsert, uint32(16), byte('N'), row("t3", "n")), commitMessage(10),
			streamCommit(7, 20), streamCommit(8, 30),
			beginMessage(10), build(KindInsert, uint32(16), byte('N'), row("t4", "n")), build(KindInsert, uint32(17), byte('N'), row("t5")), commitMessage(40)},
			"begin:9 relation:a/2 insert:16:t3,n commit:9:10:11 begin:7 relation:a/1 insert:16:t1 commit:7:20:21 begin:8 relation:b/1 insert:17:t2 commit:8:30:31" +
				" begin:10 relation:a/2 insert:16:t4,n insert:17:t5 commit:10:40:41"},
		{"what a stream that rolls back defines counts for nobody", [][]byte{
			beginMessage(6), relation(none, 16, "a", "t"), insert(none, "1"), commitMessage(10),
			start(7, 1), relation(xid(7), 16, "a", "t", "u"), stop, abort(7, 7),
			start(8, 1), relation(xid(8), 16, "a", "t"), insert(xid(8), "2"), relation(xid(9), 16, "a", "t", "u"), stop, abort(8, 9), streamCommit(8, 20),
			beginMessage(10), insert(none, "3"), commitMessage(30)},
			"begin:6 relation:a/1 insert:16:t1 commit:6:10:11 begin:8 insert:16:t2 commit:8:20:21 begin:10 insert:16:t3 commit:10:30:31"},
		{"nothing of a transaction was sent", [][]byte{abort(7, 7), abort(7, 8), streamCommit(9, 10)}, "begin:9 commit:9:10:11"},
		{"messages and truncation", [][]byte{build(KindMessage, byte(0), uint64(4), "p", uint32(1), []byte("m")),
			start(7, 1), build(KindMessage, xid(7), byte(1), uint64(5), "p", uint32(1), []byte("n")), build(KindMessage, xid(8), byte(1), uint64(6), "p", uint32(1), []byte("o")),
			build(KindTruncate, xid(9), uint32(2), byte(1), uint32(16), uint32(17)), build(KindOrigin, uint64(1), "o"), build(KindType, xid(9), uint32(1), "", "t"), stop,
			abort(7, 9), start(7, 0), build(KindTruncate, xid(10), uint32(1), byte(2), uint32(18)), stop, streamCommit(7, 10)},
			"message:false:4:p:m begin:7 message:true:5:p:n message:true:6:p:o truncate:[18]:false:true commit:7:10:11"},
	} {
		if got, err := feed(0, c.messages...); err != nil || got != c.want {
			t.Errorf("%s: %v\n got %s\nwant %s", c.name, err, got, c.want)
		}
	}
}

func TestAssemblerRefusesWhatCannotBe(t *testing.T) {
	rel := relation(none, 16, "a", "t")
	for i, messages := range [][][]byte{
		{insert(none, "x")}, {commitMessage(1)}, {beginMessage(1), beginMessage(2)}, {stop}, {beginMessage(1), start(2, 1)},
		{start(2, 0)}, {start(2, 1), stop, start(2, 1)}, {start(2, 1), start(3, 1)}, {start(2, 1), beginMessage(3)}, {start(2, 1), commitMessage(3)},
		{beginMessage(1), insert(none, "x")}, {beginMessage(1), rel, build(KindInsert, uint32(16), byte('N'), row("n", "n"))},
		{beginMessage(1), rel, build(KindUpdate, uint32(16), byte('K'), row("n", "n"), byte('N'), row("n"))},
		{beginMessage(1), streamCommit(1, 1)}, {beginMessage(1), abort(1, 1)}, {build(KindMessage, byte(1), uint64(4), "p", uint32(1), []byte("m"))},
		// A stream must bring its own definition, even where there is another.
		{beginMessage(1), rel, insert(none, "x"), commitMessage(5), start(2, 1), insert(xid(2), "x"), stop, streamCommit(2, 10)},
		{start(2, 1), relation(xid(3), 16, "a", "t"), stop, abort(2, 3), start(2, 0), insert(xid(2), "x"), stop, streamCommit(2, 10)},
		{start(2, 1), insert(xid(2), "x")[:8]}, {start(2, 1), nil}, {nil}, {start(2, 1), build('P', uint64(1))},
	} {
		if got, err := feed(0, messages...); err == nil {
			t.Errorf("case %d was accepted: %s", i, got)
		}
	}
}

func TestLimitDropsTheLargest(t *testing.T) {
	piece := func(x uint32, n int) (list [][]byte) {
		list = append(list, start(x, 1), relation(xid(x), 16, "a", "t"))
		for range n {
			list = append(list, insert(xid(x), strings.Repeat("x", 1000)))
		}
		return append(list, stop)
	}
	messages := append(piece(7, 120), piece(8, 10)...)
	messages = append(messages, piece(9, 100)...)
	messages = append(messages, streamCommit(8, 10), streamCommit(7, 20), streamCommit(9, 30), beginMessage(10), insert(none, "y"), commitMessage(40))
	got, err := feed(300<<10, messages...)
	got = strings.ReplaceAll(got, " insert:16:t"+strings.Repeat("x", 1000), "+")
	if want := "begin:8 relation:a/1++++++++++ commit:8:10:11 begin:7 large:7:[16] commit:7:20:21 begin:9" + strings.Repeat("+", 100) + " commit:9:30:31 begin:10 insert:16:ty commit:10:40:41"; err != nil || got != want {
		t.Errorf("%v\n got %s\nwant %s", err, got, want)
	}
	if got, err = feed(1, messages...); err != nil || strings.Count(got, "large") != 3 {
		t.Errorf("%v: %s", err, got)
	}
}

// nothing is a sink without effect.
type nothing struct{ rows int }

func (n *nothing) Begin(uint32) error                         { return nil }
func (n *nothing) Relation(*Relation) error                   { return nil }
func (n *nothing) Insert(uint32, Tuple) error                 { n.rows++; return nil }
func (n *nothing) Update(uint32, Tuple, OldKind, Tuple) error { n.rows++; return nil }
func (n *nothing) Delete(uint32, Tuple, OldKind) error        { n.rows++; return nil }
func (n *nothing) Truncate([]uint32, bool, bool) error        { return nil }
func (n *nothing) Message(bool, uint64, string, []byte) error { return nil }
func (n *nothing) TooLarge(uint32, []uint32) error            { return nil }
func (n *nothing) Commit(uint32, uint64, uint64) error        { return nil }

func TestRowsCostNoAllocation(t *testing.T) {
	sink := &nothing{}
	a := NewAssembler(sink, 0)
	list := [][]byte{beginMessage(5), insert(none, "x"), build(KindUpdate, uint32(16), byte('K'), row("t1"), byte('N'), row("t2")), build(KindDelete, uint32(16), byte('O'), row("t1")), commitMessage(10)}
	for _, b := range [][]byte{beginMessage(4), relation(none, 16, "a", "t"), commitMessage(5)} {
		if err := a.Message(b); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(100, func() {
		for _, b := range list {
			if err := a.Message(b); err != nil {
				t.Fatal(err)
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzDecoder(f *testing.F) {
	outside, inside := samples()
	for i, list := range [][][]byte{outside, inside} {
		for _, b := range list {
			f.Add(b, i == 1)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, inStream bool) {
		var d Decoder
		m, err := d.Decode(bytes.Clone(b), inStream)
		if err != nil {
			return
		}
		total := 0
		for _, tuple := range []Tuple{m.Old, m.New} {
			for _, v := range tuple {
				total += 1 + len(v.Data)
			}
		}
		if total > len(b) {
			t.Errorf("%d bytes of values in %d", total, len(b))
		}
	})
}

// FuzzAssembler takes its input as messages, each after its length.
func FuzzAssembler(f *testing.F) {
	join := func(list ...[]byte) (all []byte) {
		for _, b := range list {
			all = append(append(all, byte(len(b))), b...)
		}
		return all
	}
	outside, inside := samples()
	f.Add(join(outside...))
	f.Add(join(append(append([][]byte{start(7, 1)}, inside...), stop, abort(7, 9), start(7, 0), insert(xid(7), "x"), stop, streamCommit(7, 5))...))
	f.Add(join(beginMessage(5), relation(none, 16, "a", "t"), insert(none, "x"), commitMessage(10)))
	f.Add(join(beginMessage(5), []byte{'D', 0, 0, 0, 0, 'O', 0, 0})) // relation 0, which is never defined
	f.Fuzz(func(t *testing.T, b []byte) {
		a := NewAssembler(&words{}, 40<<10)
		for len(b) > 0 {
			n := min(int(b[0]), len(b)-1)
			if err := a.Message(b[1 : 1+n]); err != nil {
				return
			}
			b = b[1+n:]
			held := 0
			for _, s := range a.streams {
				held += s.bytes()
			}
			if got, _ := a.Held(); got != held {
				t.Fatalf("%d bytes held, %d counted", held, got)
			}
		}
	})
}
