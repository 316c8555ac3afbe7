package emulator

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"pgaccel/gpu/device"
)

// numbers returns n random ones, those at edges first.
func numbers(n int) []uint64 {
	v := []uint64{0, 1, 2, 3, 31, 32, 33, 63, 64, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 1<<63 - 1, 1 << 63, math.MaxUint64, math.MaxUint64 - 1, 0x8000000080000000}
	for len(v) < n {
		v = append(v, rand.Uint64()>>(rand.Uint32()%64))
	}
	return v[:n]
}

// intrinsic is a call of a and b, and what it gives.
type intrinsic struct {
	device string
	want   func(a, b uint64) uint64
}

// doubles is an operation of doubles, by their bits; 0 for a NaN.
func doubles(name string, of func(a, b float64) float64) intrinsic {
	call := name + "(__longlong_as_double(a), __longlong_as_double(b))"
	return intrinsic{fmt.Sprintf("%[1]s == %[1]s ? __double_as_longlong(%[1]s) : 0", call), func(a, b uint64) uint64 {
		v := of(math.Float64frombits(a), math.Float64frombits(b))
		if math.IsNaN(v) {
			return 0
		}
		return math.Float64bits(v)
	}}
}

// TestIntrinsics computes each intrinsic of numbers on the device and here.
func TestIntrinsics(t *testing.T) {
	const n = 2048
	a, b := numbers(n), numbers(n)
	rand.Shuffle(n, func(i, j int) { b[i], b[j] = b[j], b[i] })
	calls := []intrinsic{
		{"__popc((unsigned)a)", func(a, b uint64) uint64 { return uint64(bits.OnesCount32(uint32(a))) }},
		{"__popcll(a)", func(a, b uint64) uint64 { return uint64(bits.OnesCount64(a)) }},
		{"__ffs((int)a)", func(a, b uint64) uint64 {
			if uint32(a) == 0 {
				return 0
			}
			return uint64(bits.TrailingZeros32(uint32(a)) + 1)
		}},
		{"__ffsll((long long)a)", func(a, b uint64) uint64 {
			if a == 0 {
				return 0
			}
			return uint64(bits.TrailingZeros64(a) + 1)
		}},
		{"__clz((int)a)", func(a, b uint64) uint64 { return uint64(bits.LeadingZeros32(uint32(a))) }},
		{"__clzll((long long)a)", func(a, b uint64) uint64 { return uint64(bits.LeadingZeros64(a)) }},
		{"__brev((unsigned)a)", func(a, b uint64) uint64 { return uint64(bits.Reverse32(uint32(a))) }},
		{"__brevll(a)", func(a, b uint64) uint64 { return bits.Reverse64(a) }},
		{"__funnelshift_l((unsigned)a, (unsigned)(a >> 32), (unsigned)b)", func(a, b uint64) uint64 { return a << (b & 31) >> 32 }},
		{"__funnelshift_r((unsigned)a, (unsigned)(a >> 32), (unsigned)b)", func(a, b uint64) uint64 { return uint64(uint32(a >> (b & 31))) }},
		{"__funnelshift_lc((unsigned)a, (unsigned)(a >> 32), (unsigned)b)", func(a, b uint64) uint64 { return a << min(uint32(b), 32) >> 32 }},
		{"__funnelshift_rc((unsigned)a, (unsigned)(a >> 32), (unsigned)b)", func(a, b uint64) uint64 { return uint64(uint32(a >> min(uint32(b), 32))) }},
		{"__byte_perm((unsigned)a, (unsigned)(a >> 32), (unsigned)b)", func(a, b uint64) uint64 {
			var r uint64
			for i := range 4 {
				r |= a >> (b >> (4 * i) & 7 * 8) & 255 << (8 * i)
			}
			return r
		}},
		{"__umulhi((unsigned)a, (unsigned)b)", func(a, b uint64) uint64 { return a & math.MaxUint32 * (b & math.MaxUint32) >> 32 }},
		{"(unsigned)__mulhi((int)a, (int)b)", func(a, b uint64) uint64 { return uint64(uint32(int64(int32(a)) * int64(int32(b)) >> 32)) }},
		{"__umul64hi(a, b)", func(a, b uint64) uint64 { hi, _ := bits.Mul64(a, b); return hi }},
		{"__mul64hi((long long)a, (long long)b)", func(a, b uint64) uint64 {
			hi, _ := bits.Mul64(a, b)
			if int64(a) < 0 {
				hi -= b
			}
			if int64(b) < 0 {
				hi -= a
			}
			return hi
		}},
		doubles("__dadd_rn", func(a, b float64) float64 { return a + b }),
		doubles("__dmul_rn", func(a, b float64) float64 { return a * b }),
		doubles("__ddiv_rn", func(a, b float64) float64 { return a / b }),
		{"__double_as_longlong(__ll2double_rn(a))", func(a, b uint64) uint64 { return math.Float64bits(float64(int64(a))) }},
		{"(unsigned)min((int)a, (int)b)", func(a, b uint64) uint64 { return uint64(uint32(min(int32(a), int32(b)))) }},
		{"max((unsigned)a, (unsigned)b)", func(a, b uint64) uint64 { return uint64(max(uint32(a), uint32(b))) }},
		{"min((long long)a, (long long)b)", func(a, b uint64) uint64 { return uint64(min(int64(a), int64(b))) }},
		{"max(a, b)", func(a, b uint64) uint64 { return max(a, b) }},
		{"__ldg(&p.in[i]) + __ldcs(&p.in[i]) + __ldcg(&p.in[i])", func(a, b uint64) uint64 { return 3 * a }},
		{"(unsigned)make_uint4(1, 2, (unsigned)a, 4).z + sizeof(uint4)", func(a, b uint64) uint64 { return uint64(uint32(a)) + 16 }},
	}
	var code strings.Builder
	fmt.Fprintf(&code, "%sPGACCEL_KERNEL(test, P, p, 256, 1) {\n\tlong long i = blockIdx.x * 256ll + threadIdx.x;\n\tif (i >= p.n) return;\n\tuint64_t a = p.in[i], b = p.in[i + p.n], *out = p.out + i;\n", params("uint64_t", "uint64_t"))
	for i, c := range calls {
		fmt.Fprintf(&code, "\t__stcs(&out[%d * p.n], (uint64_t)(%s));\n", i, c.device)
	}
	code.WriteString("}\n")
	e := start(t, Options{})
	got := compute[uint64](t, e, code.String(), (n+255)/256, 256, pack(append(a, b...)), len(calls)*n, n)
	for c, call := range calls {
		for i := range n {
			if want := call.want(a[i], b[i]); got[c*n+i] != want {
				t.Fatalf("%s with a = %#x, b = %#x: %#x, want %#x", call.device, a[i], b[i], got[c*n+i], want)
			}
		}
	}
}

// TestCollectives computes each collective for masks of all sorts, here and there.
func TestCollectives(t *testing.T) {
	const warps = 64
	v, masks, args := make([]uint64, warps*32), make([]uint32, warps), make([]uint32, warps*32)
	for w := range masks {
		switch masks[w] = rand.Uint32(); w {
		case 0:
			masks[w] = math.MaxUint32
		case 1:
			masks[w] = 1
		case 2:
			masks[w] = 1 << 31
		}
		if masks[w] == 0 {
			masks[w] = 6
		}
		few := rand.Uint64()%4 + 1
		for i := range 32 {
			v[w*32+i] = rand.Uint64() % few * 0x8000000100000001
			if w%2 == 0 {
				v[w*32+i] = rand.Uint64()
			}
			args[w*32+i] = rand.Uint32() % 40
		}
	}
	named := func(mask uint32, f func(lane int)) {
		for lane := range 32 {
			if mask>>lane&1 == 1 {
				f(lane)
			}
		}
	}
	// fold reduces the low halves of a warp's named values.
	fold := func(f func(a, b uint32) uint32) func(v []uint64, mask uint32, _ int, _ []uint32) uint64 {
		return func(v []uint64, mask uint32, _ int, _ []uint32) uint64 {
			first, all := true, uint32(0)
			named(mask, func(lane int) {
				if first {
					first, all = false, uint32(v[lane])
				} else {
					all = f(all, uint32(v[lane]))
				}
			})
			return uint64(all)
		}
	}
	const undefined = 0xdeadbeefdeadbeef // not checked
	from := func(f func(lane, arg int) int) func(v []uint64, mask uint32, lane int, args []uint32) uint64 {
		return func(v []uint64, mask uint32, lane int, args []uint32) uint64 {
			if l := f(lane, int(args[lane])); mask>>l&1 == 1 {
				return v[l]
			}
			return undefined
		}
	}
	votes := func(v []uint64, mask uint32) (all uint32) {
		named(mask, func(lane int) { all |= uint32(v[lane]&1) << lane })
		return all
	}
	truth := func(b bool) uint64 {
		if b {
			return 1
		}
		return 0
	}
	type want = func(v []uint64, mask uint32, lane int, args []uint32) uint64
	calls := []struct {
		device string
		want   want
	}{
		{"__shfl_sync(mask, v, arg)", from(func(lane, arg int) int { return arg % 32 })},
		{"__shfl_sync(mask, (long long)v, arg, 8)", from(func(lane, arg int) int { return lane&^7 + arg%8 })},
		{"__shfl_up_sync(mask, v, arg)", from(func(lane, arg int) int {
			if arg > lane {
				return lane
			}
			return lane - arg
		})},
		{"__shfl_up_sync(mask, v, arg, 4)", from(func(lane, arg int) int {
			if arg > lane%4 {
				return lane
			}
			return lane - arg
		})},
		{"__shfl_down_sync(mask, v, arg)", from(func(lane, arg int) int {
			if lane+arg > 31 {
				return lane
			}
			return lane + arg
		})},
		{"__shfl_down_sync(mask, v, arg, 16)", from(func(lane, arg int) int {
			if lane%16+arg > 15 {
				return lane
			}
			return lane + arg
		})},
		{"__shfl_xor_sync(mask, v, arg & 31)", from(func(lane, arg int) int { return lane ^ arg&31 })},
		{"__ballot_sync(mask, (int)(v & 1))", func(v []uint64, mask uint32, _ int, _ []uint32) uint64 { return uint64(votes(v, mask)) }},
		{"__any_sync(mask, (int)(v & 1))", func(v []uint64, mask uint32, _ int, _ []uint32) uint64 { return truth(votes(v, mask) != 0) }},
		{"__all_sync(mask, (int)(v & 1))", func(v []uint64, mask uint32, _ int, _ []uint32) uint64 { return truth(votes(v, mask) == mask) }},
		{"__match_any_sync(mask, v)", func(v []uint64, mask uint32, lane int, _ []uint32) (same uint64) {
			named(mask, func(l int) { same |= truth(v[l] == v[lane]) << l })
			return same
		}},
		{"__match_any_sync(mask, (unsigned)(v >> 32))", func(v []uint64, mask uint32, lane int, _ []uint32) (same uint64) {
			named(mask, func(l int) { same |= truth(v[l]>>32 == v[lane]>>32) << l })
			return same
		}},
		{"__reduce_add_sync(mask, (unsigned)v)", fold(func(a, b uint32) uint32 { return a + b })},
		{"(unsigned)__reduce_add_sync(mask, (int)v)", fold(func(a, b uint32) uint32 { return a + b })},
		{"__reduce_min_sync(mask, (unsigned)v)", fold(func(a, b uint32) uint32 { return min(a, b) })},
		{"(unsigned)__reduce_min_sync(mask, (int)v)", fold(func(a, b uint32) uint32 { return uint32(min(int32(a), int32(b))) })},
		{"__reduce_max_sync(mask, (unsigned)v)", fold(func(a, b uint32) uint32 { return max(a, b) })},
		{"(unsigned)__reduce_max_sync(mask, (int)v)", fold(func(a, b uint32) uint32 { return uint32(max(int32(a), int32(b))) })},
		{"__reduce_and_sync(mask, (unsigned)v)", fold(func(a, b uint32) uint32 { return a & b })},
		{"__reduce_or_sync(mask, (unsigned)v)", fold(func(a, b uint32) uint32 { return a | b })},
		{"__reduce_xor_sync(mask, (unsigned)v)", fold(func(a, b uint32) uint32 { return a ^ b })},
	}
	var code strings.Builder
	const n = warps * 32
	code.WriteString(params("uint64_t", "uint64_t") + `
PGACCEL_KERNEL(test, P, p, 128, 1) {
	unsigned i = blockIdx.x * 128 + threadIdx.x;
	uint64_t v = p.in[3 * i], *out = p.out + i;
	unsigned mask = (unsigned)p.in[3 * i + 1], arg = (unsigned)p.in[3 * i + 2];
	if (!(mask >> i % 32 & 1)) return;
`)
	for i, c := range calls {
		fmt.Fprintf(&code, "\tout[%d] = (uint64_t)(%s);\n", i*n, c.device)
	}
	code.WriteString("}\n")
	var in []uint64
	for i := range v {
		in = append(in, v[i], uint64(masks[i/32]), uint64(args[i]))
	}
	e := start(t, Options{})
	got := compute[uint64](t, e, code.String(), n/128, 128, pack(in), len(calls)*n, n)
	for c, call := range calls {
		for w := range warps {
			named(masks[w], func(lane int) {
				want := call.want(v[w*32:][:32], masks[w], lane, args[w*32:][:32])
				if want != undefined && got[c*n+w*32+lane] != want {
					t.Errorf("%s, mask %#x, lane %d: %#x, want %#x", call.device, masks[w], lane, got[c*n+w*32+lane], want)
				}
			})
		}
	}
}

// TestBlockVotes checks the barriers that count.
func TestBlockVotes(t *testing.T) {
	e := start(t, Options{})
	for _, threads := range []int{1, 31, 33, 256} {
		for _, votes := range []int{0, 1, threads / 2, threads} {
			got := compute[uint32](t, e, params("uint32_t", "uint32_t")+`
PGACCEL_KERNEL(test, P, p, 256, 1) {
	int vote = threadIdx.x < p.n;
	unsigned all = __syncthreads_count(vote);
	all = all << 2 | (__syncthreads_or(vote * 4) != 0) << 1;
	all |= __syncthreads_and(vote) != 0;
	p.out[threadIdx.x] = all;
}`, 1, threads, nil, threads, votes)
			want := uint32(votes) << 2
			if votes > 0 {
				want |= 2
			}
			if votes == threads {
				want |= 1
			}
			for i, v := range got {
				if v != want {
					t.Errorf("%d of %d threads, thread %d: %#x, want %#x", votes, threads, i, v, want)
				}
			}
		}
	}
}

// TestAtomics has all threads of several blocks work on the same words.
func TestAtomics(t *testing.T) {
	const n = 4096
	v := make([]uint64, n)
	for i := range v {
		v[i] = rand.Uint64()
	}
	type op struct {
		call, typ string
		start     uint64
		want      func(all, v uint64) uint64
	}
	mask := func(typ string) uint64 {
		if strings.HasSuffix(typ, "long long") {
			return math.MaxUint64
		}
		return math.MaxUint32
	}
	signed := func(typ string, v uint64) int64 {
		if typ == "int" {
			return int64(int32(v))
		}
		return int64(v)
	}
	var ops []op
	for _, typ := range []string{"int", "unsigned", "unsigned long long"} {
		ops = append(ops,
			op{"atomicAdd", typ, 5, func(all, v uint64) uint64 { return all + v }},
			op{"atomicOr", typ, 5, func(all, v uint64) uint64 { return all | v&(v>>1)&(v>>2)&0x0f0f0f0f0f0f0f0f }},
			op{"atomicAnd", typ, math.MaxUint64, func(all, v uint64) uint64 { return all & (v | v>>1 | v>>2 | 0xf0f0f0f0f0f0f0f0) }},
			op{"atomicXor", typ, 5, func(all, v uint64) uint64 { return all ^ v }})
		if typ != "unsigned long long" {
			ops = append(ops, op{"atomicSub", typ, 5, func(all, v uint64) uint64 { return all - v }})
		}
	}
	for _, typ := range []string{"int", "long long"} {
		ops = append(ops,
			op{"atomicMin", typ, 5, func(all, v uint64) uint64 { return uint64(min(signed(typ, all), signed(typ, v))) }},
			op{"atomicMax", typ, 5, func(all, v uint64) uint64 { return uint64(max(signed(typ, all), signed(typ, v))) }})
	}
	for _, typ := range []string{"unsigned", "unsigned long long"} {
		ops = append(ops,
			op{"atomicMin", typ, math.MaxUint64, func(all, v uint64) uint64 { return min(all&mask(typ), v&mask(typ)) }},
			op{"atomicMax", typ, 5, func(all, v uint64) uint64 { return max(all&mask(typ), v&mask(typ)) }})
	}
	var code strings.Builder
	code.WriteString(params("uint64_t", "uint64_t") + "PGACCEL_KERNEL(test, P, p, 128, 1) {\n\tuint64_t v = p.in[blockIdx.x * 128 + threadIdx.x];\n")
	for i, o := range ops {
		operand := "v"
		switch o.call {
		case "atomicOr":
			operand = "(v & v >> 1 & v >> 2 & 0x0f0f0f0f0f0f0f0full)"
		case "atomicAnd":
			operand = "(v | v >> 1 | v >> 2 | 0xf0f0f0f0f0f0f0f0ull)"
		}
		fmt.Fprintf(&code, "\t%s((%s *)&p.out[%d], (%s)%s);\n", o.call, o.typ, i, o.typ, operand)
	}
	// What was exchanged is in one thread's hands or in memory; what is compared and swapped counts.
	exchanged := len(ops)
	for i, typ := range []string{"int", "unsigned", "unsigned long long"} {
		fmt.Fprintf(&code, "\tatomicXor(&p.out[%d], (uint64_t)(%[2]s)atomicExch((%[2]s *)&p.out[%[3]d], (%[2]s)v) & %#[4]xull);\n", exchanged+3*i, typ, exchanged+3*i+1, mask(typ))
		fmt.Fprintf(&code, "\tfor (%s old = 0, seen; (seen = atomicCAS((%[1]s *)&p.out[%d], old, old + 3)) != old; old = seen) {\n\t}\n", typ, exchanged+3*i+2)
	}
	code.WriteString("}\n")
	words := make([]uint64, exchanged+9)
	for i, o := range ops {
		words[i] = o.start
	}
	e := start(t, Options{Workers: 3})
	m := compile(t, e, code.String())
	in, out := alloc(t, e, n*8), alloc(t, e, len(words)*8)
	reply, err := run(e,
		device.Command{Op: device.OpWrite, Dst: in, Data: pack(v)},
		device.Command{Op: device.OpWrite, Dst: out, Data: pack(words)},
		launch(m, "test", n/128, 128, 0, new(device.Params).Ptr(in).Ptr(out).I64(n)),
		device.Command{Op: device.OpRead, Src: out, Bytes: uint64(len(words) * 8)})
	if err != nil {
		t.Fatal(err)
	}
	got := unpack[uint64](reply.Data[0])
	for i, o := range ops {
		want := o.start
		for _, x := range v {
			want = o.want(want, x)
		}
		if got[i]&mask(o.typ) != want&mask(o.typ) {
			t.Errorf("%s on %s: %#x, want %#x", o.call, o.typ, got[i]&mask(o.typ), want&mask(o.typ))
		}
	}
	for i, typ := range []string{"int", "unsigned", "unsigned long long"} {
		all := uint64(0)
		for _, x := range v {
			all ^= x & mask(typ)
		}
		if w := got[exchanged+3*i:]; w[0]^w[1]&mask(typ) != all {
			t.Errorf("atomicExch on %s: %#x and %#x, want %#x together", typ, w[0], w[1], all)
		} else if w[2] != 3*n {
			t.Errorf("atomicCAS on %s: %d, want %d", typ, w[2], 3*n)
		}
	}
}
