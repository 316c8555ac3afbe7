package proxy

import (
	"bytes"

	"pgaccel/engine"
	"pgaccel/wire"
)

// settingsIn returns the text to be run in place of one that sets settings of pgaccel's wrongly, or shows one; "" where it is
// to be run as it is. (engine.Settings)
func (s *session) settingsIn(text []byte) (instead string, shows bool) {
	if s.status == 'E' || !containsFold(text, "pgaccel.") || !containsFold(text, "set") && !containsFold(text, "show") {
		return "", false
	}
	instead, shows = engine.Settings(string(text))
	if shows && (s.status != 'I' || s.queue.len() > 0 || s.inBatch) {
		return "", false // a SELECT would begin the transaction's snapshot, and SET TRANSACTION fail behind it
	}
	s.setsWrongly = s.setsWrongly || instead != "" && !shows
	return instead, shows
}

// settingsQuery relays a Query that is run as another text.
func (s *session) settingsQuery(instead string, shows bool, before *[]byte) action {
	s.watch.forget()
	s.relayQuery()
	s.showing = shows
	*before = appendQuery(*before, instead)
	return swallow
}

// settingFailed returns the error that a setting which is set wrongly is, where the server's stands for that; nil for itself.
func (s *session) settingFailed(body []byte) []byte {
	if !s.setsWrongly {
		return nil
	}
	f := engine.WrongSetting(string(wire.ErrorField(body, 'M')))
	if f == nil {
		return nil
	}
	return wire.AppendError(nil, wire.ErrorFields{Severity: "ERROR", Code: f.Code, Message: f.Message, Detail: f.Detail, Hint: f.Hint,
		File: "guc.c", Line: string(wire.ErrorField(body, 'L')), Routine: string(wire.ErrorField(body, 'R'))})
}

// shownTag replaces the tag of what was run in place of a SHOW; nil where that is another's.
func (s *session) shownTag(body []byte) []byte {
	if !s.showing {
		return nil
	}
	s.showing = false
	if !bytes.HasPrefix(body, []byte("SELECT ")) {
		return nil
	}
	return appendPlainTag(nil, "SHOW")
}
