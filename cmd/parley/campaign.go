package main

import (
	"parley/internal/call"
	"parley/internal/campaign"
	"parley/internal/parley"
)

// told is how calls are made so that the campaigns they are made for are told of them.
func told(d *campaign.Roster, c call.Config) call.Config {
	c.Unanswered = []call.Unanswered{d.Unanswered}
	c.Finished = []call.Finished{d.Finished}
	c.Describe = []call.Describe{d.Describe}
	c.Ended = []func(*parley.Call){func(c *parley.Call) { d.Wake(c.UserID) }} // there is room for another
	return c
}

// caller has the campaigns' leads called.
func (h *server) caller() *campaign.Runner {
	return &campaign.Runner{Roster: h.campaigns, Start: h.calls.Start, Poll: h.node.Turn,
		Room: func() int {
			if h.pace.Behind() {
				return 0
			}
			return h.phone.room(h.calls.Stats().Live)
		}}
}
