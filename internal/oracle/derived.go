package oracle

import (
	"fmt"
	"slices"

	"pgaccel/plan"
	"pgaccel/vector"
)

// output returns what makes values those of a derived table and calls f.
func (r *run) output(number int, f func() error) func([]value) error {
	return func(values []value) error {
		r.current.outputs[number] = values
		return f()
	}
}

// every returns all rows of a Project.
func (r *run) every(p *plan.Project) (rows [][]value, err error) {
	err = r.project(p, func(values []value) error {
		rows = append(rows, values)
		return nil
	})
	return rows, err
}

// shared calls f for each row of a plan that is executed once.
func (r *run) shared(s *plan.Shared, f func([]value) error) error {
	rows, done := r.plans[s.Plan]
	if !done {
		// It may read tables that the rows around it are of.
		around := row{slices.Clone(r.current.tables), slices.Clone(r.current.groups), slices.Clone(r.current.outputs)}
		var err error
		if rows, err = r.every(s.Plan); err != nil {
			return err
		}
		r.current = around
		r.plans[s.Plan] = rows
	}
	for _, row := range rows {
		if err := f(row); err != nil {
			return err
		}
	}
	return nil
}

// series calls f for each value of a series, with its number.
func (r *run) series(s *plan.Series, f func([]value) error) error {
	args, err := r.all(s.Args())
	if err != nil || slices.ContainsFunc(args, func(v value) bool { return v.null }) {
		return err
	}
	step := int64(0)
	if s.Step != nil {
		step = args[2].i
	}
	values, ok := s.Values(args[0].i, args[1].i, step)
	if !ok {
		return failed("a series")
	}
	for i, v := range values {
		if err := f([]value{{i: v}, {i: int64(i + 1)}}); err != nil {
			return err
		}
	}
	return nil
}

// projectSet calls f for each row of what functions return for values, in lock step, with its number and what is kept.
func (r *run) projectSet(p *plan.ProjectSet, f func([]value) error) error {
	args, err := r.all(p.Args())
	if err != nil {
		return err
	}
	sets, most := make([][][]value, len(p.Calls)), 0
	for c, call := range p.Calls {
		if args[c].null {
			continue
		}
		err := call.Func.Expand(args[c].s, func(v []vector.Value) {
			var row []value
			for i := range v {
				row = append(row, computed(v[i], call.Func.Columns[i]))
			}
			sets[c] = append(sets[c], row)
		})
		if err != nil {
			return failed(err.Error())
		}
		most = max(most, len(sets[c]))
	}
	for n := range most {
		var row []value
		for c, call := range p.Calls {
			if n < len(sets[c]) {
				row = append(row, sets[c][n]...)
			} else {
				row = append(row, slices.Repeat([]value{{null: true}}, len(call.Func.Columns))...)
			}
		}
		if err := f(append(append(row, value{i: int64(n + 1)}), args[len(p.Calls):]...)); err != nil {
			return err
		}
	}
	return nil
}

// setOp calls f for each row of a set operation.
func (r *run) setOp(s *plan.SetOp, f func([]value) error) error {
	left, err := r.every(s.Left)
	if err != nil {
		return err
	}
	right, err := r.every(s.Right)
	if err != nil {
		return err
	}
	if s.Kind == plan.Union {
		left = append(slices.Clone(left), right...)
	}
	// Which of the rows that are equal is shown is not known: they must look alike.
	like := map[string][]value{}
	names := func(rows [][]value) ([]string, error) {
		names := make([]string, len(rows))
		for i, row := range rows {
			for c, v := range row {
				names[i] += fmt.Sprintf("%t %q ", v.null, equalName(s.Left.Exprs[c].Type(), v))
			}
			if o, ok := like[names[i]]; !ok {
				like[names[i]] = row
			} else if !slices.EqualFunc(o, row, sameValue) && !(s.Kind == plan.Union && s.All) {
				return nil, failed("equal rows that do not look alike")
			}
		}
		return names, nil
	}
	leftNames, err := names(left)
	if err != nil {
		return err
	}
	rightNames, err := names(right)
	if err != nil {
		return err
	}
	count := map[string]int{} // of each row of the right
	for _, n := range rightNames {
		count[n]++
	}
	given := map[string]bool{}
	for i, row := range left {
		n := leftNames[i]
		switch {
		case s.Kind == plan.Union:
		case s.All:
			some := count[n] > 0
			count[n]--
			if some != (s.Kind == plan.Intersect) {
				continue
			}
		case (count[n] > 0) != (s.Kind == plan.Intersect):
			continue
		}
		if !s.All && given[n] {
			continue
		}
		given[n] = true
		if err := f(row); err != nil {
			return err
		}
	}
	return nil
}
