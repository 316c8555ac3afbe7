package gpu

import (
	"reflect"
	"slices"
	"testing"

	"pgaccel/gpu/program"
)

// fullProgram has one of everything that a program can have.
func fullProgram() *program.Program {
	return &program.Program{
		Columns: make([]program.Column, 1),
		Lookups: []program.Lookup{{Outs: make([]program.Out, 1)}},
		Tables:  make([]program.Table, 1),
		Nodes:   []program.Node{{Args: make([]int, 1)}},
		Steps:   make([]program.Step, 1),
		Sink:    program.Sink{Digits: make([]program.Digit, 1), Accs: make([]program.Acc, 1)},
	}
}

// TestShapeKey changes every field of a program and of a tuning: each makes another kernel.
func TestShapeKey(t *testing.T) {
	key := func(p *program.Program, u *program.Tuning) []byte { return appendTuning(appendProgram(nil, p), u) }
	tuning := func() *program.Tuning {
		return &program.Tuning{StageLookups: make([]bool, 1), StageBits: make([]bool, 1), WindowLookups: make([]bool, 1), Widths: make([]int8, 1)}
	}
	base := key(fullProgram(), tuning())
	seen := 0
	var change func(v reflect.Value, path string, check func(path string))
	change = func(v reflect.Value, path string, check func(string)) {
		old := reflect.New(v.Type()).Elem()
		old.Set(v)
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				change(v.Field(i), path+"."+v.Type().Field(i).Name, check)
			}
			return
		case reflect.Slice:
			for i := range v.Len() {
				change(v.Index(i), path+"[]", check)
			}
			v.Set(reflect.Append(reflect.MakeSlice(v.Type(), 0, 0), slices.Collect(repeat(reflect.Zero(v.Type().Elem()), v.Len()+1))...))
		case reflect.Bool:
			v.SetBool(!v.Bool())
		case reflect.Int, reflect.Int8, reflect.Int64:
			v.SetInt(v.Int() + 1)
		case reflect.Uint8, reflect.Uint16:
			v.SetUint(v.Uint() + 1)
		default:
			t.Fatalf("%s is a %v", path, v.Type())
		}
		check(path)
		v.Set(old)
	}
	p, u := fullProgram(), tuning()
	check := func(path string) {
		seen++
		if slices.Equal(key(p, u), base) {
			t.Errorf("%s does not count", path)
		}
	}
	change(reflect.ValueOf(p).Elem(), "Program", check)
	change(reflect.ValueOf(u).Elem(), "Tuning", check)
	if !slices.Equal(key(p, u), base) || seen < 50 {
		t.Fatalf("%d fields changed", seen)
	}
}

func repeat[T any](v T, n int) func(func(T) bool) {
	return func(yield func(T) bool) {
		for range n {
			if !yield(v) {
				return
			}
		}
	}
}
