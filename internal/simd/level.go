package simd

import (
	"fmt"
	"os"
)

// Level is a set of instructions.
type Level uint32

// The levels, each with all that the ones before it can do.
const (
	Plain  Level = iota // Go
	AVX2                // and BMI2
	AVX512              // F, BW, DQ, VL, VBMI2
)

// String returns the level as PGACCEL_SIMD takes it.
func (l Level) String() string {
	return [...]string{"off", "avx2", "avx512"}[l]
}

// active is the level in use. It is written while the program starts, and by tests.
var active = chosen(os.Getenv("PGACCEL_SIMD"))

// chosen returns the level that the setting asks for, or the best one below it.
func chosen(setting string) Level {
	best := Best()
	switch setting {
	case "off", "plain", "0":
		return Plain
	case "avx2":
		return min(AVX2, best)
	}
	return best
}

// Active returns the level in use.
func Active() Level { return active }

// Use changes the level for tests and benchmarks, and returns the one before. It must
// not run beside kernels. It panics where the machine does not have the level.
func Use(l Level) (before Level) {
	if l > Best() {
		panic(fmt.Sprintf("BUG: level %v where the machine has %v", l, Best()))
	}
	before, active = active, l
	return before
}
