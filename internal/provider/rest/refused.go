package rest

import "sync"

// Refused holds the parts of requests that a model or its server said it doesn't accept; they are not sent again. The
// zero value is ready.
type Refused struct {
	mu     sync.Mutex
	fields map[string]bool
}

// Has reports whether a field was refused.
func (r *Refused) Has(field string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fields[field]
}

// Add notes that a field was refused.
func (r *Refused) Add(field string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fields == nil {
		r.fields = map[string]bool{}
	}
	r.fields[field] = true
}

// Sent holds the fields of one request that could be left out.
type Sent struct {
	refused *Refused
	fields  []string
}

// Begin starts a request of which nothing is sent yet.
func (r *Refused) Begin() *Sent { return &Sent{refused: r} }

// Send reports whether to send a field that is wanted.
func (s *Sent) Send(field string, wanted bool) bool {
	if !wanted || s.refused.Has(field) {
		return false
	}
	s.fields = append(s.fields, field)
	return true
}

// Learn notes the first field that was sent and complained about, and reports whether there was one: then the request
// will do better without it. It judges by what this request sent: another may have learnt the same meanwhile.
func (s *Sent) Learn(complains func(field string) bool) bool {
	for _, f := range s.fields {
		if complains(f) {
			s.refused.Add(f)
			return true
		}
	}
	return false
}
