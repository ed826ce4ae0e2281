package store

import (
	"fmt"
	"strings"

	"parley/internal/parley"
)

// leadMove is what an event does to leads, as SQL: made of the table by which parley.Lead.Move moves a single one, so
// that what moves many at once moves none that the table does not.
type leadMove struct {
	from string // the condition that a lead is in a state which the event leads from
	set  string // status = the state that it leads to
}

var (
	leadClaim   = moveOf(parley.LeadClaim)
	leadGiveUp  = moveOf(parley.LeadGiveUp)
	leadDial    = moveOf(parley.LeadDial)
	leadForgive = moveOf(parley.LeadForgive)
	leadBlock   = moveOf(parley.LeadBlock)
)

func moveOf(e parley.LeadEvent) leadMove {
	var from, cases []string
	to, one := parley.LeadStatus(""), true // all lead to one state
	for _, s := range parley.LeadStatuses {
		later, ok := s.After(e, 1)
		if !ok {
			continue
		}
		first, _ := s.After(e, 0)
		one = one && first == later && (to == "" || to == later)
		to, from = later, append(from, fmt.Sprintf("'%s'", s))
		if first != later {
			cases = append(cases, fmt.Sprintf("WHEN status = '%s' AND attempts = 0 THEN '%s'", s, first))
		}
		cases = append(cases, fmt.Sprintf("WHEN status = '%s' THEN '%s'", s, later))
	}
	m := leadMove{"status IN (" + strings.Join(from, ", ") + ")", fmt.Sprintf("status = '%s'", to)}
	if !one {
		m.set = "status = CASE " + strings.Join(cases, " ") + " END"
	}
	return m
}
