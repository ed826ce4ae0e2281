package console

import "parley/internal/parley"

// limitGroup is the limits of one span.
type limitGroup struct {
	id, title, help string
	spans           []parley.LimitSpan
	list            []parley.LimitUse
}

// limitsPage shows every limit of the account, and how much of it is used.
func (c *Console) limitsPage(r *request) (*answer, error) {
	list, err := c.DB.Limits(r.Context(), r.UserID(), parley.Now())
	if err != nil {
		return nil, err
	}
	groups := []limitGroup{
		{id: "stored-t", title: "Stored", help: "Delete what you no longer need to make room.", spans: []parley.LimitSpan{parley.Stored}},
		{id: "together-t", title: "At the same time", help: "Wait until one has ended. Calls include tests.",
			spans: []parley.LimitSpan{parley.Together}},
		{id: "day-t", title: "Per day", help: "Days begin at 00:00 UTC.", spans: []parley.LimitSpan{parley.PerDay}},
		{id: "often-t", title: "How often",
			help:  "Limits that are over within an hour. Those with the name of a setting are set by the operator of this server.",
			spans: []parley.LimitSpan{parley.PerSecond, parley.PerMinute, parley.PerHour}},
	}
	for i := range groups {
		for _, span := range groups[i].spans {
			for _, l := range list {
				if l.Span == span {
					groups[i].list = append(groups[i].list, l)
				}
			}
		}
	}
	return show("Limits", limitsPage(r.who.User.Plan, groups)), nil
}
