package console

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"parley"
	"parley/internal/call"
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
	if len(form.Query(r.URL.Query(), &l.callQuery)) > 0 {
		return nil, false, nil
	}
	if l.AssistantID != 0 {
		if _, err := c.DB.Assistant(r.Context(), r.UserID(), l.AssistantID); err != nil {
			return nil, false, err
		}
	}
	from, to := l.bounds()
	f := store.CallFilter{Status: parley.CallStatus(l.Status), Type: parley.CallType(l.Type), Phone: l.Phone,
		AssistantID: l.AssistantID, From: from, To: to}
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
	if l.assistants, l.any, err = c.assistantFilter(r); err != nil {
		return nil, err
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
