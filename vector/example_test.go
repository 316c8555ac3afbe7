package vector_test

import (
	"fmt"

	"pgaccel/vector"
)

func ExampleDiv() {
	a, _ := vector.ParseDecimal("10.00")
	b, _ := vector.ParseDecimal("3")
	q, ok := vector.Div(a, b)
	fmt.Println(q, ok) // as PostgreSQL's numeric division has it
	// Output: 3.3333333333333333 true
}

func ExampleColumn_Append() {
	price := vector.Column{Type: vector.NumericType(2)}
	price.Append(vector.Int(vector.Numeric, 1999), 0) // unscaled
	price.Append(vector.Null(price.Type), 1)
	fmt.Println(price.Decimals[0], price.IsNull(0), price.IsNull(1))
	// Output: 19.99 false true
}
