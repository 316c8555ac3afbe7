package olap

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgaccel/catalog"
	"pgaccel/compress"
	"pgaccel/gpu"
	"pgaccel/gpu/device"
	"pgaccel/gpu/emulator"
	"pgaccel/gpu/program"
	"pgaccel/plan"
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

// TestMatch has the kernel find which strings match, at edge lengths, and compares that with LIKE of each string.
func TestMatch(t *testing.T) {
	e, err := emulator.New(emulator.Options{SMs: 2, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	m, err := e.Compile(t.Context(), 0, program.TranscodeSource())
	if err != nil {
		t.Fatal(err)
	}
	var all []device.Pointer
	alloc := func(bytes int64) device.Pointer {
		p, err := e.Alloc(0, max(bytes, 16))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
		return p
	}
	run := func(c ...device.Command) *device.Reply {
		reply, err := e.Run(t.Context(), 0, &device.Batch{Commands: c})
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	upload := func(data []byte) device.Pointer {
		p := alloc(int64(len(data)))
		run(device.Command{Op: device.OpWrite, Dst: p, Data: data})
		return p
	}
	leaf := plan.Column{T: textType(vector.Text, collC, -1)}
	meta := &catalog.Table{OID: 7, Name: "texts", Columns: []catalog.Column{{Name: "s", Type: leaf.T}}}
	r := rand.New(rand.NewPCG(9, 9))
	large, matched, unmatched := 0, 0, 0
	for _, n := range []int{512, 513, 527, 528, 529, 640, 4095, 4096, 4097, 9001} {
		var rows [][]vector.Datum
		for _, s := range matchTexts(r, n) {
			rows = append(rows, []vector.Datum{{Type: leaf.T, Str: s}})
		}
		d := columnDict(load(t, newStore(t, 1<<16), meta, rows).Dicts[0], leaf.T)
		b := d.src.Blocks()
		if b.Strings != d.n || b.ID == 0 {
			t.Fatalf("%d of %d strings are packed", b.Strings, d.n)
		}
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
			bytes, starts := program.StringsBytes(&match.Strings)
			at := &program.Matching{Of: set, Strings: alloc(bytes), To: alloc(program.BitsBytes(set)), Next: upload(match.Next)}
			var words []byte
			for _, w := range match.Strings.Starts {
				words = binary.LittleEndian.AppendUint32(words, w)
			}
			var rest []byte
			for _, w := range match.Rest {
				rest = binary.LittleEndian.AppendUint16(rest, w)
			}
			at.Rest = upload(rest)
			run(device.Command{Op: device.OpWrite, Dst: at.Strings, Data: match.Strings.Data},
				device.Command{Op: device.OpWrite, Dst: at.Strings + device.Pointer(starts), Data: words},
				device.Command{Op: device.OpFill, Dst: at.To, Bytes: uint64(program.BitsBytes(set)), Value: 0xffffffff}, at.Launch(m))
			data := run(device.Command{Op: device.OpRead, Src: at.To, Bytes: uint64(program.BitsBytes(set))}).Data[0]
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
		for _, p := range all {
			if err := e.Free(0, p); err != nil {
				t.Fatal(err)
			}
		}
		all = nil
	}
	if large == 0 || matched < 10_000 || unmatched < 10_000 {
		t.Errorf("%d automata are too large, %d strings match, %d do not", large, matched, unmatched)
	}
}

// noteMatches counts conditions on strings that a device is given.
type noteMatches struct {
	gpu.Runner
	n *int
}

func (d *noteMatches) Run(ctx context.Context, q *program.Query, opt gpu.RunOptions) (*program.Result, gpu.Stats, error) {
	for i := range q.Bits {
		*d.n += int(b2i(q.Bits[i].Match != nil))
	}
	return d.Runner.Run(ctx, q, opt)
}

// TestLikeOnDevice has a device decide LIKE over a dictionary in whole queries: of groups, of rows, and where some
// are null.
func TestLikeOnDevice(t *testing.T) {
	buildsSmall(t)
	o := newOnPlainDevice()
	emulator := emulated(t)
	text := textType(vector.Text, collC, -1)
	columns := []catalog.Column{{Name: "id", Type: vector.TypeOf(vector.Int4)}, {Name: "g", Type: vector.TypeOf(vector.Int4)}, {Name: "s", Type: text}}
	meta := &catalog.Table{OID: 1, Schema: "public", Name: "t0", Columns: columns}
	r := rand.New(rand.NewPCG(11, 11))
	matches := 0
	noted := &noteMatches{Runner: o.device, n: &matches}
	for k, n := range []int{600, 1024, 3000} {
		texts := matchTexts(r, n)
		var rows [][]vector.Datum
		for i := range 2 * len(texts) {
			row := []vector.Datum{{Type: columns[0].Type, I: int64(i)}, {Type: columns[1].Type, I: r.Int64N(9)}, {Type: text, Str: texts[i%len(texts)]}}
			if i >= len(texts) && k > 0 && r.IntN(5) == 0 {
				row[2] = vector.Null(text)
			}
			rows = append(rows, row)
		}
		w := &world{r: r, tables: []*randomTable{{meta, rows, load(t, newStore(t, 1024), meta, rows)}}}
		w.options.Eager = true
		for i, pattern := range matchPatterns {
			noted.Runner = o.device
			if i == 3 && k == 1 || i == 6 {
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
			} else {
				q.Output = []plan.Expr{w.named("id")}
			}
			o.check(t, fmt.Sprintf("%d texts, query %d", n, i), w, q)
		}
	}
	o.log(t)
	if o.used*4 < o.answered*3 || matches < o.used/2 || o.fallbacks[fallbackFault] > 0 {
		t.Errorf("the device computed %d of %d queries, with %d conditions on strings; not: %v", o.used, o.answered, matches, o.fallbacks)
	}
}
