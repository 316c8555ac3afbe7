package gpu

import "time"

// Times are a query's on the host: the first four follow one another.
type Times struct {
	Wait      time.Duration // for a stream or buffers, and for what another query brings, or computes for it
	Prepare   time.Duration // from the query to commands
	RoundTrip time.Duration // of batches, from the commands to the executor's reply
	Result    time.Duration // from the reply to the result
	// Of RoundTrip: between the executor's getting a batch and its reply, and until the device had all of its commands.
	Executor, Enqueue time.Duration
}

// Add adds those of a query that was computed after another one.
func (t *Times) Add(o Times) {
	t.Wait += o.Wait
	t.Prepare += o.Prepare
	t.RoundTrip += o.RoundTrip
	t.Result += o.Result
	t.Executor += o.Executor
	t.Enqueue += o.Enqueue
}

// beside takes those of another device into account, which has computed at the same time.
func (t *Times) beside(o Times) {
	t.Wait = max(t.Wait, o.Wait)
	t.Prepare = max(t.Prepare, o.Prepare)
	t.RoundTrip = max(t.RoundTrip, o.RoundTrip)
	t.Result = max(t.Result, o.Result)
	t.Executor = max(t.Executor, o.Executor)
	t.Enqueue = max(t.Enqueue, o.Enqueue)
}

// spent adds the time since the last call, or since the job began, to one of its times.
func (j *job) spent(on *time.Duration) {
	now := time.Now()
	if !j.since.IsZero() {
		*on += now.Sub(j.since)
	}
	j.since = now
}
