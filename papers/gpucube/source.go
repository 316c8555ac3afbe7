package gpucube

import (
	"fmt"
	"math"
	"strings"
)

// rounds returns how many rounds of a block's warps fit 32-bit sums, whatever the values.
func (s *scan) rounds(product uint64) uint64 {
	cells := uint64(s.threads / lanes * vectorCells / s.copies)
	return (1<<31 - 1<<16) / max(mulSaturated(product, cells), 1)
}

// write writes the source.
func (g *generator) write(low, high int, windows bool, definite bool, method Method, accessors []string, rounds uint64) {
	s := g.s
	var w strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&w, format+"\n", args...) }
	value, fits32, relevant := g.value, g.fits32, g.relevant
	var widths []int
	for _, d := range s.columns {
		widths = append(widths, g.dims[d].width)
	}
	steady := map[int]bool{}
	for _, d := range s.steady {
		steady[s.column(d)] = true
	}
	cells := s.places * uint64(s.copies)

	line("#include \"cube_scan.cuh\"")
	line("struct CubeScan {")
	line("\tconst uint32_t *columns[%d];", len(widths)+2)
	line("\tconst uint32_t *zones[%d];", max(len(s.steady), 1))
	line("\tconst unsigned char *tables;")
	line("\tcube_u64 *sums;\n\tunsigned char *seen;\n\tcube_u64 cells;\n\tcube_i64 base;\n};")
	line("PGACCEL_KERNEL(cube_scan, CubeScan, p, %d, %d) {", s.threads, s.blocks)
	line("\tPGACCEL_DYNAMIC_SHARED(near);")
	line("\tconst uint32_t lane = threadIdx.x & 31, warp = threadIdx.x >> 5;")
	if len(g.far) > 0 {
		line("\tconst unsigned char *far = p.tables + %d;", s.near)
	}
	if s.near > 0 {
		line("\tfor (uint32_t i = threadIdx.x; i < %du; i += %du)", s.near/4, s.threads)
		line("\t\treinterpret_cast<uint32_t *>(near)[i] = reinterpret_cast<const uint32_t *>(p.tables)[i];")
	}
	switch method {
	case ClassesShared:
		line("\tint32_t *lo = reinterpret_cast<int32_t *>(near + %d), *hi = lo + %d;", s.near, cells)
		if !definite {
			line("\tunsigned char *seen = reinterpret_cast<unsigned char *>(hi + %d);", cells)
			line("\tfor (uint32_t i = threadIdx.x; i < %du; i += %du)\n\t\tseen[i] = 0;", s.places, s.threads)
		}
		line("\tfor (uint32_t i = threadIdx.x; i < %du; i += %du) {", cells, s.threads)
		line("\t\tlo[i] = hi[i] = 0;")
		line("\t}")
		line("\tconst int32_t copy = int32_t(lane & %d);", s.copies-1)
	case ClassesRegister:
		line("\tcube_i64 sum = 0;\n\tuint32_t any = 0;")
	}
	line("\t__syncthreads();")
	// A cell's value goes to its place.
	line("\tauto add = [&](int32_t place, %s v) {", value)
	if !relevant {
		line("\t\tif (place < 0)\n\t\t\treturn;")
	}
	switch {
	case method == ClassesRegister:
		line("\t\tsum += v;\n\t\tany = 1;\n\t\t(void)place;")
	case method == ClassesGlobal:
		line("\t\tatomicAdd(p.sums + place, cube_u64(cube_i64(v)));\n\t\tp.seen[place] = 1;")
	case windows:
		line("\t\tatomicAdd(lo + (place + copy), v);")
	default:
		line("\t\tcube_u64 x = cube_u64(cube_i64(v));")
		line("\t\tuint32_t low = uint32_t(x), old = atomicAdd(reinterpret_cast<uint32_t *>(lo) + (place + copy), low);")
		line("\t\tuint32_t high = uint32_t(x >> 32) + (old + low < old);")
		line("\t\tif (high != 0)\n\t\t\tatomicAdd(reinterpret_cast<uint32_t *>(hi) + (place + copy), high);")
	}
	if method == ClassesShared && !definite {
		// Lanes that set the flag of one place do not get in each other's way: no copies.
		line("\t\tseen[uint32_t(place) / %du] = 1;", s.copies)
	}
	line("\t};")
	// Codes to places, for columns that are steady and for the others.
	for pass, name := range []string{"fresh", "steady"} {
		args := ""
		for c := range widths {
			if steady[c] == (pass == 1) {
				args += fmt.Sprintf("uint32_t e%d, ", c)
			}
		}
		line("\tauto %s = [&](%sint32_t &place, %s &factor) {", name, args, value)
		for i, a := range accessors {
			if g.groups[i].steady == (pass == 1) {
				line("\t\t%s", a)
			}
		}
		line("\t\t(void)place;\n\t\t(void)factor;\n\t};")
	}
	call := func(pass int) string {
		args := ""
		for c := range widths {
			if steady[c] == (pass == 1) {
				args += fmt.Sprintf("e%d, ", c)
			}
		}
		return args
	}
	valueOf := func(lowCode, highCode string) string {
		switch {
		case fits32 && low == 0:
			return "int32_t(p.base)"
		case fits32:
			return "int32_t(p.base) + int32_t(" + lowCode + ")"
		case low == 0:
			return "p.base"
		case high == 0:
			return "p.base + cube_i64(" + lowCode + ")"
		}
		return "p.base + cube_i64(cube_u64(" + highCode + ") << 32 | " + lowCode + ")"
	}
	line("\tauto vector = [&](uint32_t v) {")
	line("\t\tint32_t at = 0;\n\t\t%s by = 1;\n\t\tbool even = v < uint32_t(p.cells / CUBE_VECTOR);", value)
	for z, d := range s.steady {
		line("\t\tuint32_t e%d = __ldg(p.zones[%d] + 2 * v);", s.column(d), z)
		line("\t\teven = even && e%d == __ldg(p.zones[%d] + 2 * v + 1);", s.column(d), z)
	}
	line("\t\tif (even) {")
	if len(s.steady) > 0 {
		line("\t\t\tsteady(%sat, by);", call(1))
		if !relevant {
			line("\t\t\tif (at < 0)\n\t\t\t\treturn;")
		}
	}
	all := append(append([]int(nil), widths...), low, high)
	for c, width := range all {
		if width == 0 || steady[c] {
			continue
		}
		line("\t\t\tuint32_t w%d[%d];", c, width)
		line("#pragma unroll\n\t\t\tfor (uint32_t i = 0; i < %d; i++)", width)
		line("\t\t\t\tw%d[i] = __ldg(p.columns[%d] + (uint64_t(v) * %d + i) * 32 + lane);", c, c, width)
	}
	line("#pragma unroll\n\t\t\tfor (uint32_t i = 0; i < 32; i++) {")
	line("\t\t\t\tint32_t place = at;\n\t\t\t\t%s factor = by;", value)
	for c, width := range all {
		if width != 0 && !steady[c] {
			line("\t\t\t\tuint32_t e%d = cube_take<%d>(w%d, i);", c, width, c)
		}
	}
	n := len(widths)
	line("\t\t\t\tfresh(%splace, factor);", call(0))
	line("\t\t\t\tadd(place, (%s) * factor);", valueOf(fmt.Sprint("e", n), fmt.Sprint("e", n+1)))
	line("\t\t\t}\n\t\t\treturn;\n\t\t}")
	// The last vector, and those in which a steady column changes.
	line("#pragma unroll 1\n\t\tfor (uint32_t i = 0; i < 32; i++) {")
	line("\t\t\tcube_u64 cell = uint64_t(v) * CUBE_VECTOR + i * 32 + lane;\n\t\t\tif (cell >= p.cells)\n\t\t\t\tcontinue;")
	line("\t\t\tint32_t place = 0;\n\t\t\t%s factor = 1;", value)
	for c, width := range all {
		if width != 0 {
			line("\t\t\tuint32_t e%d = cube_code(CubeColumn{p.columns[%d], %d, 0}, uint32_t(cell));", c, c, width)
		}
	}
	line("\t\t\tsteady(%splace, factor);\n\t\t\tfresh(%splace, factor);", call(1), call(0))
	line("\t\t\tadd(place, (%s) * factor);\n\t\t}\n\t};", valueOf(fmt.Sprint("e", n), fmt.Sprint("e", n+1)))
	// Warps take vectors in turns.
	line("\tconst uint32_t vectors = uint32_t((p.cells + CUBE_VECTOR - 1) / CUBE_VECTOR), step = gridDim.x * %du;", s.threads/lanes)
	if windows {
		line("\tuint32_t left = %du;", min(rounds, math.MaxUint32))
	}
	line("\tfor (uint32_t first = blockIdx.x * %du; first < vectors; first += step) {", s.threads/lanes)
	line("\t\tif (first + warp < vectors)\n\t\t\tvector(first + warp);")
	if windows {
		line("\t\tif (--left == 0) {\n\t\t\tleft = %du;\n\t\t\t__syncthreads();", min(rounds, math.MaxUint32))
		line("\t\t\tfor (uint32_t i = threadIdx.x; i < %du; i += %du) {", cells, s.threads)
		line("\t\t\t\thi[i] += lo[i] >> 16;\n\t\t\t\tlo[i] &= 0xffff;\n\t\t\t}\n\t\t\t__syncthreads();\n\t\t}")
	}
	line("\t}")
	switch method {
	case ClassesRegister:
		line("\t__shared__ cube_i64 sums[32];\n\t__shared__ uint32_t anys[32];")
		line("\tsum = cube_sum(sum);\n\tany = __reduce_or_sync(CUBE_ALL, any);")
		line("\tif (lane == 0) {\n\t\tsums[warp] = sum;\n\t\tanys[warp] = any;\n\t}\n\t__syncthreads();")
		line("\tif (threadIdx.x == 0) {\n\t\tfor (uint32_t i = 1; i < %d; i++) {\n\t\t\tsum += sums[i];\n\t\t\tany |= anys[i];\n\t\t}", s.threads/lanes)
		line("\t\tp.sums[blockIdx.x] = cube_u64(sum);\n\t\tp.seen[blockIdx.x] = (unsigned char)any;\n\t}")
	case ClassesShared:
		line("\t__syncthreads();")
		line("\tfor (uint32_t i = threadIdx.x; i < %du; i += %du) {", s.places, s.threads)
		line("\t\tcube_i64 sum = 0;\n\t\tuint32_t any = 0;")
		line("\t\tfor (uint32_t j = 0; j < %du; j++) {\n\t\t\tuint32_t k = i * %du + (i + j) %% %du;", s.copies, s.copies, s.copies)
		if windows {
			line("\t\t\tsum += cube_i64(hi[k]) * 65536 + lo[k];")
		} else {
			line("\t\t\tsum += cube_i64(cube_u64(uint32_t(hi[k])) << 32 | uint32_t(lo[k]));")
		}
		line("\t\t}")
		if definite {
			line("\t\tany = sum != 0;")
		} else {
			line("\t\tany = seen[i];")
		}
		line("\t\tp.sums[uint64_t(blockIdx.x) * %du + i] = cube_u64(sum);\n\t\tp.seen[uint64_t(blockIdx.x) * %du + i] = (unsigned char)any;\n\t}", s.places, s.places)
	}
	line("}")
	s.code = w.String()
}
