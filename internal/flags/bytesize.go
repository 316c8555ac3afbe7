package flags

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ByteSize is a flag for sizes: 8GiB, 512MiB, 8GB (read as GiB, as Postgres does),
// or plain bytes.
type ByteSize int64

// String implements pflag.Value.
func (b *ByteSize) String() string {
	n := int64(*b)
	for _, u := range []struct {
		shift uint
		name  string
	}{{40, "TiB"}, {30, "GiB"}, {20, "MiB"}, {10, "KiB"}} {
		if n > 0 && n&(1<<u.shift-1) == 0 {
			return strconv.FormatInt(n>>u.shift, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// Set implements pflag.Value.
func (b *ByteSize) Set(s string) error {
	t := strings.ToLower(strings.TrimSpace(s))
	shift := uint(0)
	for _, u := range []struct {
		suffix string
		shift  uint
	}{{"tib", 40}, {"gib", 30}, {"mib", 20}, {"kib", 10}, {"tb", 40}, {"gb", 30}, {"mb", 20}, {"kb", 10}, {"b", 0}} {
		if rest, ok := strings.CutSuffix(t, u.suffix); ok {
			t, shift = strings.TrimSpace(rest), u.shift
			break
		}
	}
	n, err := strconv.ParseFloat(t, 64)
	if size := n * float64(int64(1)<<shift); err == nil && size >= 0 && size < math.MaxInt64 {
		*b = ByteSize(size)
		return nil
	}
	return fmt.Errorf("%q is not a size such as 8GiB", s)
}

// Type implements pflag.Value.
func (b *ByteSize) Type() string { return "size" }
