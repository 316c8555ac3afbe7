package olap

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgaccel/catalog"
	"pgaccel/compress"
	"pgaccel/gpu"
	"pgaccel/gpu/device"
	"pgaccel/gpu/emulator"
	"pgaccel/gpu/program"
	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// matchTexts are n different strings: some that begin alike for longer than a head is shared, some of bytes that are no
// symbols, one that is empty.
func matchTexts(r *rand.Rand, n int) []string {
	list := randomTexts(r, n)
	long := strings.Repeat("€/b", 200)
	for i, s := range list {
		switch i % 7 {
		case 0:
			list[i] = long + s
		case 1, 2, 3:
			list[i] = "carefully final deposits " + s
		case 4:
			list[i] = s + " carefully final requests"
		case 5:
			list[i] = strings.Repeat("carefully final deposits ", 30) + s
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

var matchPatterns = []string{"%a%b%", "%carefully%a", "a%b", "%", "%é%", `%\%%`, "%€ %depo%", "%😀", "c%deposits %", "%requests", "%" + strings.Repeat("€/b", 20) + "%"}

// stringsDevice runs kernels over strings on an emulated device.
type stringsDevice struct {
	t      *testing.T
	e      device.Executor
	module device.Module
	all    []device.Pointer
}

func newStringsDevice(t *testing.T) *stringsDevice {
	t.Helper()
	e, err := emulator.New(emulator.Options{SMs: 2, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	m, err := e.Compile(t.Context(), 0, program.TranscodeSource())
	if err != nil {
		t.Fatal(err)
	}
	return &stringsDevice{t: t, e: e, module: m}
}

func (d *stringsDevice) alloc(bytes int64) device.Pointer {
	d.t.Helper()
	p, err := d.e.Alloc(0, max(bytes, 16))
	if err != nil {
		d.t.Fatal(err)
	}
	d.all = append(d.all, p)
	return p
}

func (d *stringsDevice) run(c ...device.Command) *device.Reply {
	d.t.Helper()
	reply, err := d.e.Run(d.t.Context(), 0, &device.Batch{Commands: c})
	if err != nil {
		d.t.Fatal(err)
	}
	return reply
}

func (d *stringsDevice) upload(data any) device.Pointer {
	d.t.Helper()
	b, err := binary.Append(nil, binary.LittleEndian, data)
	if err != nil {
		d.t.Fatal(err)
	}
	p := d.alloc(int64(len(b)))
	if len(b) > 0 {
		d.run(device.Command{Op: device.OpWrite, Dst: p, Data: b})
	}
	return p
}

// walk brings strings, runs what launch makes over them, and returns the bytes that are written.
func (d *stringsDevice) walk(s *program.Strings, steps []uint8, rest any, bytes int64, launch func(at *program.StringsAt) device.Command) []byte {
	d.t.Helper()
	size, starts := program.StringsBytes(s)
	at := &program.StringsAt{Strings: d.alloc(size), Steps: d.upload(steps), Rest: d.upload(rest), To: d.alloc(bytes)}
	var words []byte
	for _, w := range s.Starts {
		words = binary.LittleEndian.AppendUint32(words, w)
	}
	out := d.run(device.Command{Op: device.OpWrite, Dst: at.Strings, Data: s.Data},
		device.Command{Op: device.OpWrite, Dst: at.Strings + device.Pointer(starts), Data: words},
		device.Command{Op: device.OpFill, Dst: at.To, Bytes: uint64(bytes), Value: 0xffffffff}, launch(at),
		device.Command{Op: device.OpRead, Src: at.To, Bytes: uint64(bytes)}).Data[0]
	for _, p := range d.all {
		if err := d.e.Free(0, p); err != nil {
			d.t.Fatal(err)
		}
	}
	d.all = nil
	return out
}

// packedTexts is a dictionary of texts, all of which are packed.
func packedTexts(t *testing.T, texts []string) *dict {
	t.Helper()
	text := textType(vector.Text, collC, -1)
	meta := &catalog.Table{OID: 7, Name: "texts", Columns: []catalog.Column{{Name: "s", Type: text}}}
	var rows [][]vector.Datum
	for _, s := range texts {
		rows = append(rows, []vector.Datum{{Type: text, Str: s}})
	}
	d := columnDict(load(t, newStore(t, 1<<16), meta, rows).Dicts[0], text)
	if b := d.src.Blocks(); b.Strings != d.n || b.ID == 0 {
		t.Fatalf("%d of %d strings are packed", b.Strings, d.n)
	}
	return d
}

// stringCounts are numbers of strings at which blocks, and blocks of threads, end.
var stringCounts = []int{512, 513, 527, 528, 529, 640, 4095, 4096, 4097, 9001}

// TestMatch has the kernel find which strings match, at edge lengths, and compares that with LIKE of each string.
func TestMatch(t *testing.T) {
	dev := newStringsDevice(t)
	leaf := plan.Column{T: textType(vector.Text, collC, -1)}
	r := rand.New(rand.NewPCG(9, 9))
	large, matched, unmatched := 0, 0, 0
	for _, n := range stringCounts {
		d := packedTexts(t, matchTexts(r, n))
		for i, pattern := range matchPatterns {
			e := call(plan.OpLike, vector.Bool, leaf, plan.Const{Datum: vector.Datum{Type: leaf.T, Str: pattern}})
			if i%2 == 0 {
				e = call(plan.OpNot, vector.Bool, e)
			}
			like := newEncodedLike(e, d)
			if like == nil {
				t.Fatalf("%q is not matched as it is encoded", pattern)
			}
			match := like.onDevice()
			if match == nil {
				large++
				continue
			}
			if len(match.Rest) > 1 || len(match.Rest) == 1 && match.Rest[0] != 0 {
				t.Fatalf("%d strings: more are matched than there are: %v", d.n, match.Rest)
			}
			// As if more strings had come since.
			more := r.IntN(40)
			match.Rest = make([]uint16, (d.n+more+15)/16-match.RestFirst)
			want := slices.Grow(like.bits(), more/64+1)
			want = want[:(d.n+more+63)/64]
			for code := d.n; code < d.n+more; code++ {
				if r.IntN(2) == 0 {
					match.Rest[code/16-match.RestFirst] |= 1 << (code % 16)
					want[code>>6] |= 1 << (code & 63)
				}
			}
			set := &program.Bits{Set: compress.Set{Size: int64(d.n + more)}, Match: match}
			data := dev.walk(&match.Strings, match.Next, match.Rest, program.BitsBytes(set), func(at *program.StringsAt) device.Command {
				return match.Launch(dev.module, set, at)
			})
			for code := range d.n + more {
				is := data[code>>3]>>(code&7)&1 != 0
				should := want[code>>6]>>(code&63)&1 != 0
				if code < d.n {
					ok, err := likeSteps(d.at(int64(code)), pattern, false)
					if err != nil {
						t.Fatal(err)
					}
					if should != (ok != like.not) {
						t.Fatalf("%q like %q: the processor finds %v", d.at(int64(code)), pattern, should)
					}
					if ok {
						matched++
					} else {
						unmatched++
					}
				}
				if is != should {
					t.Fatalf("%d strings and %d, code %d, like %q (not: %v): %v", d.n, more, code, pattern, like.not, is)
				}
			}
		}
	}
	if large == 0 || matched < 10_000 || unmatched < 10_000 {
		t.Errorf("%d automata are too large, %d strings match, %d do not", large, matched, unmatched)
	}
}

// TestLengths has the kernel find how long strings are, encoded and not.
func TestLengths(t *testing.T) {
	dev := newStringsDevice(t)
	r := rand.New(rand.NewPCG(10, 10))
	encoded, plain := 0, 0
	for k, n := range stringCounts {
		texts := matchTexts(r, n)
		if k%3 == 2 { // of which no symbol table makes less
			for i := range texts {
				text := make([]rune, 1+r.IntN(40))
				for j := range text {
					if text[j] = rune(1 + r.IntN(127)); r.IntN(20) == 0 {
						text[j] = rune(0x80 + r.IntN(0x700))
					}
				}
				texts[i] = string(text)
			}
		}
		d := packedTexts(t, texts)
		for _, characters := range []bool{false, true} {
			l := &program.Lengths{Strings: stringsOf(d.src), CodeLengths: d.src.CodeLengths(characters)}
			if len(l.CodeLengths) == 512 {
				encoded++
			} else {
				plain++
			}
			for range r.IntN(40) {
				l.Rest = append(l.Rest, r.Int32())
			}
			table := &program.TableData{Lengths: l}
			data := dev.walk(&l.Strings, l.CodeLengths, l.Rest, program.LengthsBytes(table), func(at *program.StringsAt) device.Command {
				return l.Launch(dev.module, table, at)
			})
			for code := range int64(d.n) {
				s := d.at(code)
				want := len(s)
				if characters {
					want = utf8.RuneCountInString(s)
				}
				if got := int32(binary.LittleEndian.Uint32(data[4*code:])); int(got) != want {
					t.Fatalf("%d strings, code %d, %q, of characters %v: %d instead of %d", d.n, code, s, characters, got, want)
				}
				if int64(len(s)) > d.src.Longest() {
					t.Fatalf("%d strings: %q is longer than %d", d.n, s, d.src.Longest())
				}
			}
			for i, want := range l.Rest {
				if got := int32(binary.LittleEndian.Uint32(data[4*(d.n+i):])); got != want {
					t.Fatalf("%d strings, %d behind them: %d instead of %d", d.n, i, got, want)
				}
			}
		}
	}
	if encoded == 0 || plain == 0 {
		t.Errorf("%d dictionaries are encoded, %d are not", encoded, plain)
	}
}

// noteStrings counts what a device is asked of strings.
type noteStrings struct {
	gpu.Runner
	matches, lengths int
}

func (d *noteStrings) Run(ctx context.Context, q *program.Query, opt gpu.RunOptions) (*program.Result, gpu.Stats, error) {
	for i := range q.Bits {
		d.matches += int(b2i(q.Bits[i].Match != nil))
	}
	for i := range q.Tables {
		d.lengths += int(b2i(q.Tables[i].Lengths != nil))
	}
	return d.Runner.Run(ctx, q, opt)
}

// textWorld has a table of numbers, groups and texts, twice as many as there are different ones: of a row the one that at says. With nulls some
// of the second half are null.
func textWorld(t *testing.T, r *rand.Rand, n int, nulls bool, at func(i, n int) int) *world {
	t.Helper()
	text := textType(vector.Text, collC, -1)
	columns := []catalog.Column{{Name: "id", Type: vector.TypeOf(vector.Int4)}, {Name: "g", Type: vector.TypeOf(vector.Int4)}, {Name: "s", Type: text}}
	meta := &catalog.Table{OID: 1, Schema: "public", Name: "t0", Columns: columns}
	texts := matchTexts(r, n)
	var rows [][]vector.Datum
	for i := range 2 * len(texts) {
		row := []vector.Datum{{Type: columns[0].Type, I: int64(i)}, {Type: columns[1].Type, I: r.Int64N(9)}, {Type: text, Str: texts[at(i, len(texts))]}}
		if i >= len(texts) && nulls && r.IntN(5) == 0 {
			row[2] = vector.Null(text)
		}
		rows = append(rows, row)
	}
	w := &world{r: r, tables: []*randomTable{{meta, rows, load(t, newStore(t, 1024), meta, rows)}}}
	w.options.Eager = true
	return w
}

// TestStringsOnDevice has a device decide LIKE over a dictionary, and find lengths, in whole queries: of groups, of rows, and where some
// are null.
func TestStringsOnDevice(t *testing.T) {
	buildsSmall(t)
	o := newOnPlainDevice()
	emulator := emulated(t)
	text := textType(vector.Text, collC, -1)
	r := rand.New(rand.NewPCG(11, 11))
	noted := &noteStrings{Runner: o.device}
	for k, n := range []int{600, 1024, 3000} {
		w := textWorld(t, r, n, k > 0, func(i, n int) int { return i % n })
		meta, columns := w.tables[0].meta, w.tables[0].meta.Columns
		for i, pattern := range matchPatterns {
			noted.Runner = o.device
			if i == 3 && k == 1 || i == 6 || i == 8 { // 8: two conditions on the same strings
				noted.Runner = emulator
			}
			o.runner = noted
			like := func(p string) plan.Expr {
				return call(plan.OpLike, vector.Bool, w.named("s"), plan.Const{Datum: vector.Datum{Type: text, Str: p}})
			}
			q := &plan.Star{Tables: []plan.Source{{Meta: meta}}, Filter: []plan.Expr{like(pattern)}}
			if i%3 == 0 {
				q.Filter[0] = call(plan.OpNot, vector.Bool, q.Filter[0])
			}
			if i%4 == 0 {
				q.Filter = append(q.Filter, call(plan.OpNot, vector.Bool, like("%a%a%")))
			}
			if q.Grouped = i%2 == 0; q.Grouped {
				q.Group = []plan.Expr{w.named("g")}
				q.Aggs = []plan.AggregateCall{{Func: plan.CountStar, T: vector.TypeOf(vector.Int8)}}
				q.Output = []plan.Expr{plan.Key{T: columns[1].Type}, plan.Agg{T: vector.TypeOf(vector.Int8)}}
				f := sqlfn.ByOID([]uint32{1317, 1374}[w.r.IntN(2)])
				length := functionCall(f, w.named("s"))
				switch w.r.IntN(4) {
				case 0:
					q.Group[0], q.Output[0] = length, plan.Key{T: length.T}
				case 1, 2:
					q.Aggs = append(q.Aggs, plan.AggregateCall{Func: plan.Sum, Arg: length, T: vector.TypeOf(vector.Int8)})
					q.Output = append(q.Output, plan.Agg{Index: 1, T: vector.TypeOf(vector.Int8)})
				}
			} else {
				q.Output = []plan.Expr{w.named("id")}
			}
			o.check(t, fmt.Sprintf("%d texts, query %d", n, i), w, q)
		}
	}
	o.log(t)
	if o.used*4 < o.answered*3 || noted.matches < o.used/2 || noted.lengths < o.used/5 || o.fallbacks[fallbackFault] > 0 {
		t.Errorf("the device computed %d of %d queries, with %d conditions on strings and %d lengths; not: %v", o.used, o.answered, noted.matches, noted.lengths, o.fallbacks)
	}
}

// TestTextInOrder orders by texts whose codes are in order, and takes the least and the greatest of them: with LIMIT, with nulls, on the
// processor and on a device.
func TestTextInOrder(t *testing.T) {
	buildsSmall(t)
	defer func(was int64) { cutCandidates = was }(cutCandidates)
	cutCandidates = 4
	o := newOnPlainDevice()
	emulator := emulated(t)
	text := textType(vector.Text, collC, -1)
	r := rand.New(rand.NewPCG(13, 13))
	for k, n := range []int{600, 1024, 3000} {
		w := textWorld(t, r, n, k > 0, func(_, n int) int { return r.IntN(n) })
		meta, columns := w.tables[0].meta, w.tables[0].meta.Columns
		if d := columnDict(w.tables[0].table.Dicts[2], text); !d.inOrder(text.Collation) {
			t.Fatal("the codes are in no order")
		}
		for i := range 24 {
			if o.runner = o.device; i == 5 {
				o.runner = emulator
			}
			q := &plan.Star{Tables: []plan.Source{{Meta: meta}}}
			if w.r.IntN(3) == 0 {
				q.Filter = []plan.Expr{call(plan.OpGt, vector.Bool, w.named("g"), plan.Const{Datum: vector.Int(vector.Int4, w.r.Int64N(9))})}
			}
			if q.Grouped = i%2 == 0; q.Grouped {
				q.Group = []plan.Expr{w.named("g")}
				q.Output = []plan.Expr{plan.Key{T: columns[1].Type}}
				for _, f := range []*sqlfn.Aggregate{plan.Min, plan.Max}[w.r.IntN(2):] {
					q.Output = append(q.Output, plan.Agg{Index: len(q.Aggs), T: text})
					q.Aggs = append(q.Aggs, plan.AggregateCall{Func: f, Arg: w.named("s"), T: text})
				}
			} else {
				q.Output = []plan.Expr{w.named("s"), w.named("id")}
				q.Order = []plan.Order{{Expr: w.named("s"), Desc: w.r.IntN(2) == 0, NullsFirst: w.r.IntN(2) == 0}, {Expr: w.named("id"), Desc: w.r.IntN(2) == 0}}
				q.Limit = plan.Const{Datum: vector.Int(vector.Int8, w.r.Int64N(60))}
			}
			o.check(t, fmt.Sprintf("%d texts, query %d", n, i), w, q)
		}
	}
	o.log(t)
	if o.used*3 < o.answered*2 || o.answered < 60 || o.fallbacks[fallbackFault] > 0 {
		t.Errorf("the device computed %d of %d queries; not: %v", o.used, o.answered, o.fallbacks)
	}
}
