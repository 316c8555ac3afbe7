package bench

import (
	"fmt"
	"os"
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

// perExecution says what an execution of many takes, and how many processors were busy.
func (c wireCPU) perExecution(executions int, took time.Duration) string {
	var parts []string
	var all time.Duration
	for i, name := range wireProcesses {
		parts = append(parts, fmt.Sprintf("%s %.3f", name, milliseconds(c[i])/float64(max(executions, 1))))
		all += c[i]
	}
	return fmt.Sprintf("Processor time of an execution, ms: %s; %.1f processors were busy.", strings.Join(parts, ", "), all.Seconds()/took.Seconds())
}

// processorTimes is what the processes that there are have taken so far; the server's are those of its sessions, too.
func (s *statementsRun) processorTimes() (c wireCPU) {
	pgaccel, server := s.child.cmd.Process.Pid, s.server.PID()
	for i, pids := range [...][]int{{os.Getpid()}, {pgaccel}, childrenOf(pgaccel), append(childrenOf(server), server)} {
		for _, pid := range pids {
			c[i] += processorTime(pid)
		}
	}
	return c
}
