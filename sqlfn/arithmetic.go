package sqlfn

import (
	"math"
	"math/big"

	"pgaccel/vector"
)

// arithmetics are functions of numbers that compute more than their rounding (PostgreSQL's int.c, int8.c and numeric.c).
var arithmetics = []Function{
	divisorOf("gcd", 5044, vector.Int4, gcd),
	divisorOf("gcd", 5045, vector.Int8, gcd),
	divisorOf("lcm", 5046, vector.Int4, lcm),
	divisorOf("lcm", 5047, vector.Int8, lcm),
	{
		Name: "div", OID: 1973, Result: vector.Numeric, Args: []Param{{Kind: vector.Numeric}, {Kind: vector.Numeric, Usual: []string{"7", "2.5", "-3", "0.1"}}},
		Samples: [][]string{roundSamples, roundSamples},
		Type:    func(Call) vector.Type { return vector.NumericType(0) },
		Eval: func(args []vector.Value) (vector.Value, error) {
			x, y := aligned(args[0].Num, args[1].Num)
			if y.Sign() == 0 {
				return vector.NullValue, failed("division by zero")
			}
			return integral(x.Quo(x, y))
		},
	},
	{
		Name: "sqrt", OID: 1730, Result: vector.Numeric, Args: []Param{{Kind: vector.Numeric}},
		Samples: [][]string{append([]string{"2", "3.00", "4", "9999", "10000", "0.0001", "0.00001", "100000000", "99999999", "123456.789", "0.1234567890123456789"}, roundSamples...)},
		Type:    func(Call) vector.Type { return vector.NumericType(vector.VaryingScale) },
		Eval:    func(args []vector.Value) (vector.Value, error) { return squareRoot(args[0].Num) },
	},
	{
		Name: "width_bucket", OID: 2170, Result: vector.Int4,
		Args: []Param{{Kind: vector.Numeric}, {Kind: vector.Numeric, Usual: []string{"0", "-5", "0.5"}}, {Kind: vector.Numeric, Usual: []string{"100", "-100", "7.25"}},
			{Kind: vector.Int4, Usual: []string{"1", "5", "10"}}},
		Samples: [][]string{{"0", "1", "-1", "0.35", "5", "9.99", "10", "10.06", "99.999999", "123456789012345678.9"}, {"0", "10.00", "0.024", "-5"}, {"0", "10", "10.0600", "-0.5", "99.9"},
			{"1", "3", "7", "100", "9999", "0", "-1"}},
		Eval: func(args []vector.Value) (vector.Value, error) {
			return bucket(args[0].Num, args[1].Num, args[2].Num, args[3].I)
		},
	},
}

var divisorSamples = []string{"0", "1", "-1", "2", "-4", "6", "330", "462", "2147483647", "-2147483648"}

// divisorOf is of two integers, and fails where its result is beyond their type.
func divisorOf(name string, oid uint32, k vector.Kind, of func(a, b *big.Int) *big.Int) Function {
	samples := divisorSamples
	if k == vector.Int8 {
		samples = append([]string{"9223372036854775807", "-9223372036854775808", "6074000999"}, samples...)
	}
	return Function{
		Name: name, OID: oid, Result: k, Args: []Param{{Kind: k}, {Kind: k, Usual: []string{"12", "0", "7"}}}, Samples: [][]string{samples, samples},
		Eval: func(args []vector.Value) (vector.Value, error) {
			r := of(big.NewInt(args[0].I), big.NewInt(args[1].I))
			if !r.IsInt64() || k == vector.Int4 && r.Int64() > math.MaxInt32 {
				return vector.NullValue, failed("integer out of range")
			}
			return vector.Value{I: r.Int64()}, nil
		},
	}
}

func gcd(a, b *big.Int) *big.Int { return new(big.Int).GCD(nil, nil, a.Abs(a), b.Abs(b)) }

func lcm(a, b *big.Int) *big.Int {
	if a.Sign() == 0 || b.Sign() == 0 {
		return new(big.Int)
	}
	r := new(big.Int).Mul(a, b)
	return r.Abs(r).Quo(r, gcd(a, b))
}

// aligned returns two numerics in units of the finer one's scale.
func aligned(a, b vector.Decimal) (x, y *big.Int) {
	x, y = a.Unscaled.Big(), b.Unscaled.Big()
	if n := int(b.Scale) - int(a.Scale); n > 0 {
		x = new(big.Int).Mul(x, vector.BigPow10(n))
	} else if n < 0 {
		y = new(big.Int).Mul(y, vector.BigPow10(-n))
	}
	return x, y
}

func integral(n *big.Int) (vector.Value, error) {
	u, ok := vector.Int128FromBig(n)
	if !ok {
		return vector.NullValue, failed("numeric beyond the bits that are held")
	}
	return vector.Value{Num: vector.Decimal{Unscaled: u}}, nil
}

// squareRoot has 16 significant digits at least, counted by groups of four, and the decimals of v (numeric_sqrt).
func squareRoot(v vector.Decimal) (vector.Value, error) {
	n := v.Unscaled.Big()
	if n.Sign() < 0 {
		return vector.NullValue, failed("cannot take square root of a negative number")
	}
	group := 0
	if n.Sign() > 0 {
		group = floorDiv(len(n.String())-1-int(v.Scale), 4)
	}
	scale := max(16-(2*group+1), int(v.Scale), 0)
	n = new(big.Int).Mul(n, vector.BigPow10(2*scale-int(v.Scale)))
	root := new(big.Int).Sqrt(n)
	if rest := n.Sub(n, new(big.Int).Mul(root, root)); rest.Cmp(root) > 0 { // beyond the square of root and a half
		root.Add(root, big.NewInt(1))
	}
	out, err := integral(root)
	out.Num.Scale = int16(scale)
	return out, err
}

func floorDiv(a, b int) int {
	if a < 0 {
		return -((b - 1 - a) / b)
	}
	return a / b
}

// The server rounds a quotient, to 16 digits at least, before it cuts it off: none within these limits is as near to the next bucket.
const maxBuckets = 9999

var maxBucketSpan = big.NewInt(1e14)

// bucket is the one of count buckets of equal width from low to high, or from low down to high, in which v is.
func bucket(v, low, high vector.Decimal, count int64) (vector.Value, error) {
	if count <= 0 {
		return vector.NullValue, failed("count must be greater than zero")
	}
	l, h := aligned(low, high)
	finest := vector.Decimal{Scale: max(low.Scale, high.Scale)}
	x, _ := aligned(v, finest)
	if n := int(v.Scale) - int(finest.Scale); n > 0 {
		l, h = new(big.Int).Mul(l, vector.BigPow10(n)), new(big.Int).Mul(h, vector.BigPow10(n))
	}
	span := new(big.Int).Sub(h, l)
	x = new(big.Int).Sub(x, l)
	if span.Sign() < 0 {
		span.Neg(span)
		x.Neg(x)
	}
	switch {
	case span.Sign() == 0:
		return vector.NullValue, failed("lower bound cannot equal upper bound")
	case x.Sign() < 0:
		return vector.Value{}, nil
	case x.Cmp(span) >= 0 && count < math.MaxInt32:
		return vector.Value{I: count + 1}, nil
	case count > maxBuckets || span.Cmp(maxBucketSpan) > 0:
		return vector.NullValue, failed("width_bucket() of this many buckets, or of bounds with this many digits")
	}
	x.Mul(x, big.NewInt(count))
	return vector.Value{I: x.Quo(x, span).Int64() + 1}, nil
}
