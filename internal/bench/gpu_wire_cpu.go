package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// wireProcesses are the sides among which the machine's processors are divided.
var wireProcesses = [...]string{"clients", "pgaccel", "device's process", "server"}

// wireCPU is the processor time of each.
type wireCPU [len(wireProcesses)]time.Duration

func (c wireCPU) since(b wireCPU) wireCPU {
	for i := range c {
		c[i] -= b[i]
	}
	return c
}

// each says what an execution of many takes, and how many processors were busy.
func (c wireCPU) each(executions int, took time.Duration) string {
	var parts []string
	var all time.Duration
	for i, name := range wireProcesses {
		parts = append(parts, fmt.Sprintf("%s %.3f", name, milliseconds(c[i])/float64(max(executions, 1))))
		all += c[i]
	}
	return fmt.Sprintf("Processor time of an execution, ms: %s; %.1f processors were busy.", strings.Join(parts, ", "), all.Seconds()/took.Seconds())
}

// cpu is the time that the processes have taken so far.
func (s *statementsRun) cpu() (c wireCPU, err error) {
	worker, err := childOf(s.child.cmd.Process.Pid)
	if err != nil {
		return c, err
	}
	for i, pid := range []int{os.Getpid(), s.child.cmd.Process.Pid, worker} {
		p, err := processOf(pid)
		if err != nil {
			return c, err
		}
		c[i] = p.took
	}
	server := s.server.PID()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return c, err
	}
	for _, file := range files {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		p, err := processOf(pid)
		switch {
		case err != nil: // it has ended, and counts in what its parent waited for
		case pid == server:
			c[3] += p.took + p.ended
		case p.parent == server:
			c[3] += p.took
		}
	}
	return c, nil
}

// process is what the kernel says of one.
type process struct {
	parent      int
	took, ended time.Duration // of its threads, of children that have ended
}

// clockTick is the unit of /proc/PID/stat, USER_HZ, which is 100 on all of Linux' architectures that Go has.
const clockTick = time.Second / 100

// processOf reads /proc/PID/stat (man 5 proc_pid_stat).
func processOf(pid int) (p process, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return p, err
	}
	// The program's name is in parentheses and may have any characters: fields are counted from behind it, where the third is.
	f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(f) < 15 {
		return p, fmt.Errorf("process %d: cannot read %q", pid, text)
	}
	var n [5]int
	for i, field := range []int{4, 14, 15, 16, 17} { // ppid, utime, stime, cutime, cstime
		if n[i], err = strconv.Atoi(f[field-3]); err != nil {
			return p, fmt.Errorf("process %d: field %d: %w", pid, field, err)
		}
	}
	return process{n[0], time.Duration(n[1]+n[2]) * clockTick, time.Duration(n[3]+n[4]) * clockTick}, nil
}
