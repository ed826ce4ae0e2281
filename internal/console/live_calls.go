package console

import (
	"fmt"
	"strconv"
	"strings"

	"parley/internal/call"
	"parley/internal/parley"
)

// liveCalls are the user's calls that are not over, as the page of live calls shows them.
func (c *Console) liveCalls(r *request) ([]callView, error) {
	list, legs, err := c.Calls.Live(r.Context(), r.UserID())
	if err != nil {
		return nil, err
	}
	views := make([]callView, len(list))
	for i := range list {
		list[i].Duration = list[i].Talked(parley.Now())
		views[i] = callView{Call: &list[i], legs: legs[list[i].ID], joinable: c.joinable(&list[i])}
	}
	return views, nil
}

// joinable says whether somebody may take part in a call from this browser.
func (c *Console) joinable(one *parley.Call) bool {
	return c.Attend != nil && one.Status == parley.CallInProgress
}

// liveShape changes when the page of live calls becomes another: a call has begun, is answered, or is over.
func liveShape(list []callView) string {
	var b strings.Builder
	for _, v := range list {
		fmt.Fprintf(&b, "%d.%t ", v.ID, v.Status == parley.CallInProgress)
	}
	return b.String()
}

// lineVersion changes when what is shown of a live call does, but for its clock.
func (v *callView) lineVersion() string {
	last := 0
	if n := len(v.Turns); n > 0 {
		last = len(v.Turns[n-1].Text)
	}
	return fmt.Sprintf("%s.%d.%d.%s", v.Status, len(v.Turns), last, v.legsVersion())
}

func (c *Console) liveCallsPage(r *request) (*answer, error) {
	list, err := c.liveCalls(r)
	if err != nil {
		return nil, err
	}
	numbers, err := c.ownNumbers(r)
	for i := range list {
		list[i].numbers = numbers
	}
	return show("Live calls", liveCallsPage(list)), err
}

// ownNumbers are what a telephone that is called into a call may see.
func (c *Console) ownNumbers(r *request) ([]option, error) {
	list, err := c.DB.Numbers(r.Context(), r.UserID())
	options := []option{{label: "From the call's own number"}}
	for _, n := range list {
		if n.ReleasedAt == 0 {
			options = append(options, option{value: strconv.FormatInt(n.ID, 10), label: "From " + parley.FormatPhone(n.PhoneNumber)})
		}
	}
	return options, err
}

// liveCallsLive sends what changes in each call, and says when there are others.
func (c *Console) liveCallsLive(r *request) (*answer, error) {
	sent, shape := map[string]string{}, "none yet"
	return c.live(r, func(s *stream) (topics []string, err error) {
		list, err := c.liveCalls(r)
		if err != nil {
			return nil, err
		}
		if now := liveShape(list); now != shape {
			shape = now
			s.send("list", map[string]string{"version": now})
		}
		for i := range list {
			v := &list[i]
			topics = append(topics, call.Topic(v.ID))
			if now := v.lineVersion(); sent[v.lineID()] != now {
				sent[v.lineID()] = now
				s.put(callLine(v))
			}
		}
		return topics, nil
	})
}

func (v *callView) lineID() string { return fmt.Sprintf("line-%d", v.ID) }

// callBack leads back to the page on which something was done about a call.
func callBack(r *request, done ...string) *answer {
	if r.PostFormValue("from") == "live" {
		return see("/live-calls", done...)
	}
	return see("/calls/"+r.PathValue("id"), done...)
}

// callWhisper tells the assistant something in writing.
func (c *Console) callWhisper(r *request) (*answer, error) {
	if err := c.Calls.Whisper(r.Context(), r.UserID(), r.id("id"), r.PostFormValue("message")); err != nil {
		return nil, err
	}
	return callBack(r), nil
}

// callInvite calls a supervisor's telephone into a call.
func (c *Console) callInvite(r *request) (*answer, error) {
	to, mode := r.target(r.PostFormValue("phone_number")), parley.LegMode(r.PostFormValue("mode"))
	if _, err := c.DB.Call(r.Context(), r.UserID(), r.id("id")); err != nil {
		return nil, err
	}
	if to == "" || !mode.Valid() {
		return nil, parley.Errorf(parley.Invalid, "Enter the telephone number to call, and choose what for.")
	}
	i := call.Invitation{To: to, Mode: mode, Listed: !r.who.Role().Includes(parley.RoleEditor), By: r.who.Author()}
	if text := r.PostFormValue("phone_number_id"); text != "" {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, parley.Errorf(parley.Invalid, "This is not one of your numbers.")
		}
		i.NumberID = &id
	}
	_, err := c.Calls.Invite(r.Context(), r.UserID(), r.id("id"), i)
	return callBack(r), err
}

// callLegSet gives somebody who takes part by telephone another mode, or hangs up on them.
func (c *Console) callLegSet(r *request) (*answer, error) {
	mode, err := r.PostFormValue("mode"), error(nil)
	if mode == "hang_up" {
		err = c.Calls.HangupLeg(r.Context(), r.UserID(), r.id("id"), r.id("leg"))
	} else {
		_, err = c.Calls.ChangeLeg(r.Context(), r.UserID(), r.id("id"), r.id("leg"), parley.LegMode(mode))
	}
	return callBack(r), err
}
