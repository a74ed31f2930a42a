package lm

import (
	"infill/internal/parallel"
	"infill/lm/internal/ort"
)

// guarded calls call. A panic is an error for the requests that share the call.
func (e *engine) guarded(c *sharedCall, parts []part) error {
	return parallel.Safely(func() error { return e.call(c, parts) })
}

// guarded calls make. A panic is an error for the requests that wait for the
// session.
func (l *lazySession) guarded(m *MaskedLM) (session *ort.Session, err error) {
	err = parallel.Safely(func() error {
		session, err = l.make(m)
		return err
	})
	return session, err
}
