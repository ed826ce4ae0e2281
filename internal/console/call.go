package console

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/internal/call"
	"parley/internal/event"
	"parley/internal/form"
	"parley/internal/store"
)

// callQuery is what the list of calls is asked for: the API's filters.
type callQuery struct {
	dates
	Status      string `query:"status" enum:"initiated,ringing,in-progress,completed,busy,no-answer,failed,canceled"`
	Type        string `query:"type" enum:"inbound,outbound,web"`
	Phone       string `query:"phone_number" maxLength:"32"`
	AssistantID int64  `query:"assistant_id" minimum:"1"`
	Page        int    `query:"page" minimum:"1" maximum:"2147483648"`
}

// values are the filters as parameters, without the page.
func (q callQuery) values() url.Values {
	v := q.dates.values()
	set(v, "status", q.Status)
	set(v, "type", q.Type)
	set(v, "phone_number", q.Phone)
	if q.AssistantID != 0 {
		v.Set("assistant_id", strconv.FormatInt(q.AssistantID, 10))
	}
	return v
}

func (q callQuery) at(path string, page int) string { return address(path, q.values(), page) }

// calls is a page of calls.
type calls struct {
	callQuery
	list       []parley.Call
	total      int
	assistants []option
	any        *parley.Assistant // to show how calls begin; nil when there is none
	base       string            // of the API
}

// version changes when anything in the list does.
func (l *calls) version() string {
	var b strings.Builder
	for _, c := range l.list {
		fmt.Fprintf(&b, "%d.%s.%d.%d ", c.ID, c.Status, c.Duration, c.TotalCost())
	}
	b.WriteString(strconv.Itoa(l.total))
	return b.String()
}

// topics are what tells of the calls that are live.
func (l *calls) topics() (list []string) {
	for _, c := range l.list {
		if c.Status.Live() {
			list = append(list, call.Topic(c.ID))
		}
	}
	return list
}

// calls reads what a query asks for; ok is false when it is none.
func (c *Console) calls(r *request) (l *calls, ok bool, err error) {
	l = &calls{callQuery: callQuery{Page: 1}}
	if len(form.Query(emptied(r.URL.Query()), &l.callQuery)) > 0 {
		return nil, false, nil
	}
	if l.AssistantID != 0 {
		if _, err := c.DB.Assistant(r.Context(), r.UserID(), l.AssistantID); err != nil {
			return nil, false, err
		}
	}
	from, to := l.bounds()
	f := store.CallFilter{Status: parley.CallStatus(l.Status), Type: parley.CallType(l.Type), Phone: l.Phone, AssistantID: l.AssistantID, From: from, To: to}
	if n, ok := parley.NormalizePhone(l.Phone); ok {
		f.Phone = n
	}
	l.list, l.total, err = c.DB.Calls(r.Context(), r.UserID(), f, store.Page{Number: l.Page, Size: pageSize})
	return l, true, err
}

func (c *Console) callList(r *request) (*answer, error) {
	l, ok, err := c.calls(r)
	if err != nil {
		return nil, err
	}
	if !ok {
		return see("/calls"), nil
	}
	if len(l.list) == 0 && l.total > 0 { // beyond the end
		return see(l.at("/calls", (l.total+pageSize-1)/pageSize)), nil
	}
	some, _, err := c.DB.AssistantPage(r.Context(), r.UserID(), store.Page{Number: 1, Size: maxOthers})
	if err != nil {
		return nil, err
	}
	l.assistants = []option{{value: "", label: "All assistants"}}
	for _, a := range some {
		l.assistants = append(l.assistants, option{value: strconv.FormatInt(a.ID, 10), label: a.Name})
	}
	if len(some) > 0 {
		l.any = &some[0]
	}
	l.base = c.base(r)
	return show("Calls", callList(l)), nil
}

// callListLive tells a reader of the list when it has changed.
func (c *Console) callListLive(r *request) (*answer, error) {
	if _, ok, err := c.calls(r); err != nil || !ok {
		return see("/calls"), err
	}
	was := ""
	return c.live(r, func(s *stream) ([]string, error) {
		l, _, err := c.calls(r)
		if err != nil {
			return nil, err
		}
		if now := l.version(); now != was {
			was = now
			s.send("list", map[string]string{"version": now})
		}
		return l.topics(), nil
	})
}

// callView is a call as its page shows it.
type callView struct {
	*parley.Call
	told []parley.Delivery // events that tell of it
}

func (v *callView) path(more string) string {
	return "/calls/" + strconv.FormatInt(v.ID, 10) + more
}

// call reads one of the user's calls as it stands.
func (c *Console) call(ctx context.Context, r *request) (*callView, error) {
	one, err := c.Calls.Now(ctx, r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	if one.Status.Live() {
		one.Duration = one.Talked(parley.Now())
	}
	told, err := c.DB.CallDeliveries(ctx, r.UserID(), one.ID)
	return &callView{one, told}, err
}

func (c *Console) callPage(r *request) (*answer, error) {
	v, err := c.call(r.Context(), r)
	if err != nil {
		return nil, err
	}
	return show("Call with "+v.customer(), callPage(v)), nil
}

// customer is what a call's other side is called.
func (v *callView) customer() string { return callCustomer(v.Call) }

func callCustomer(c *parley.Call) string {
	switch {
	case c.CustomerPhone != nil:
		return parley.FormatPhone(*c.CustomerPhone)
	case c.Type == parley.CallWeb:
		return "a browser"
	}
	return "somebody without a number"
}

// callLive sends what changes of a call's page: its turns and tools as they come, what is being said, and where it is in its life. What is
// said as it is said is known to the node alone that has the call.
func (c *Console) callLive(r *request) (*answer, error) {
	v, err := c.call(r.Context(), r)
	if err != nil {
		return nil, err
	}
	sent, shape := map[string]string{}, ""
	look := func(s *stream) ([]string, error) {
		now, err := c.call(r.Context(), r)
		if err != nil {
			return nil, err
		}
		for _, p := range now.parts() {
			if sent[p.id] != p.version {
				sent[p.id] = p.version
				s.put(p.body)
			}
		}
		if at := now.shape(); at != shape {
			shape = at
			s.send("list", map[string]string{"version": at})
		}
		return []string{call.Topic(now.ID)}, nil
	}
	return c.follow(r, look, func(s *stream, e event.Event) bool {
		text, ok := e.Data.(string)
		if e.Kind != call.Partial || !ok {
			return true
		}
		sent["partial"] = text
		s.put(partial(v, text))
		return false
	})
}

// shape changes when the page becomes another: when the call is over, and when its recording is there.
func (v *callView) shape() string {
	return fmt.Sprintf("%t.%t.%t", v.Status.Live(), v.Recording != "", v.RecordingDue)
}

// parts are the pieces of the page that change by themselves.
func (v *callView) parts() (list []part) {
	if v.Status.Live() {
		for _, s := range v.scenes() {
			list = append(list, part{s.id, s.version(), sceneOf(s)})
		}
		list = append(list, part{"partial", "", partial(v, "")}) // sent once: then as it is heard
	}
	return append(list, part{"call-state", v.stateVersion(), callState(v)}, part{"facts", v.factsVersion(), callFacts(v)}, part{"told", v.toldVersion(), callTold(v)})
}

func (v *callView) stateVersion() string {
	return fmt.Sprintf("%s.%s", v.Status, v.EndedReason)
}

func (v *callView) factsVersion() string {
	return fmt.Sprintf("%s.%s.%d.%d.%d.%d.%t", v.Status, v.AnsweredBy, len(v.Variables), len(v.Evaluation), len(v.InputVariables), v.TotalCost(), v.ReportDue == 0)
}

func (v *callView) toldVersion() string {
	var b strings.Builder
	for _, d := range v.told {
		fmt.Fprintf(&b, "%d.%s.%d ", d.ID, d.Status, d.Attempts)
	}
	return b.String()
}

// scene is a turn of a call, or a tool that was used in it.
type scene struct {
	id   string
	ms   int64 // since the answer
	turn *parley.CallTurn
	tool *parley.CallTool
}

func (s *scene) version() string {
	if s.tool != nil {
		return "tool"
	}
	return fmt.Sprintf("%d.%t", len(s.turn.Text), s.turn.Interrupted)
}

// scenes are the turns and the tools of a call, in their order.
func (v *callView) scenes() []scene {
	list := make([]scene, 0, len(v.Turns)+len(v.FunctionCalls))
	for i := range v.Turns {
		list = append(list, scene{id: "t-" + strconv.Itoa(i), ms: v.Turns[i].StartedAtMS, turn: &v.Turns[i]})
	}
	for i := range v.FunctionCalls {
		list = append(list, scene{id: "x-" + strconv.Itoa(i), ms: v.FunctionCalls[i].AtMS, tool: &v.FunctionCalls[i]})
	}
	slices.SortStableFunc(list, func(a, b scene) int { return cmp.Compare(a.ms, b.ms) })
	return list
}

func (c *Console) callHangup(r *request) (*answer, error) {
	if err := c.Calls.Hangup(r.Context(), r.UserID(), r.id("id")); err != nil {
		return nil, err
	}
	return see("/calls/"+r.PathValue("id"), "hung-up"), nil
}

func (c *Console) callDelete(r *request) (*answer, error) {
	if err := c.Calls.Delete(r.Context(), r.UserID(), r.id("id")); err != nil {
		return nil, err
	}
	return see("/calls", "deleted"), nil
}

// callRecording streams a call's recording, or the range of it that a player asks for.
func (c *Console) callRecording(r *request) (*answer, error) {
	one, err := c.DB.Call(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	o, err := c.Calls.OpenRecording(r.Context(), one)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	h := r.w.Header()
	h.Set("Content-Type", "audio/wav")
	h.Set("Content-Disposition", "inline; filename=\"call-"+strconv.FormatInt(one.ID, 10)+".wav\"")
	h.Set("Cache-Control", "private, no-store")
	http.ServeContent(r.w, r.Request, "", parley.Time(one.EndedAt).Time(), o)
	return nil, nil
}
