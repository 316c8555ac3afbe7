package server

import "pgaccel/engine"

// status is what pgaccel.status shows in a session of the database beside what the engine knows.
func (s *Server) status(d *database) engine.Status {
	now := engine.Status{Version: Version(), Started: s.started, Device: s.device.describe()[len("device: "):], Sessions: s.proxy.Sessions()}
	if r := d.replicator; r != nil {
		h := r.Health()
		now.Connected, now.LagBytes, now.Lag = h.Connected, h.LagBytes, h.Lag
		now.LastError, now.LastErrorAt, now.Copies, now.Recopies = h.LastError, h.LastErrorAt, h.Copies, h.Recopies
		now.Saved, now.SaveFaults = h.Saved, h.SaveFailures
	}
	return now
}
