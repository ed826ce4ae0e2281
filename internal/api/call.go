package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"parley/internal/auth"
	"parley/internal/call"
	"parley/internal/parley"
	"parley/internal/search"
	"parley/internal/store"
	"parley/internal/web"
)

func (a *API) callRoutes() {
	const tag, missing = "Calls", "Call not found"
	handle(a, op{Method: "POST", Path: "/user/make_call", Name: "makeCall", Tag: tag, Idempotent: true,
		Summary: "Start an outbound call"}, a.makeCall)
	handle(a, op{Method: "GET", Path: "/user/calls", Name: "listCalls", Tag: tag, Summary: "List calls"}, a.listCalls)
	handle(a, op{Method: "GET", Path: "/user/calls/{id}", Name: "getCall", Tag: tag, NotFound: missing,
		Summary: "Read a call"}, a.getCall)
	handle(a, op{Method: "DELETE", Path: "/user/calls/{id}", Name: "deleteCall", Tag: tag, NotFound: missing,
		Summary: "Delete a call that is over, with its recording"}, a.deleteCall)
	handle(a, op{Method: "POST", Path: "/user/calls/{id}/hangup", Name: "hangUpCall", Tag: tag, NotFound: missing,
		Summary: "Hang up"}, a.hangUpCall)
	handle(a, op{Method: "POST", Path: "/user/calls/{id}/legs", Name: "inviteToCall", Tag: tag, NotFound: missing,
		Status: 201, Idempotent: true, Summary: "Call a supervisor or a third person into a live call"}, a.inviteToCall)
	handle(a, op{Method: "POST", Path: "/user/calls/{id}/listen", Name: "listenToCall", Tag: tag, NotFound: missing,
		Status: 201, Raw: sdpType, Stream: sdpType,
		Summary: "Join a live call from a browser (WHIP, RFC 9725): an SDP offer in, the answer out, Location is the leg"}, a.listenToCall)
	handle(a, op{Method: "POST", Path: "/user/calls/{id}/whisper", Name: "whisperInCall", Tag: tag, NotFound: missing,
		Idempotent: true, Summary: "Whisper to the assistant in writing during a live call; nobody else hears it"}, a.whisperInCall)
	handle(a, op{Method: "PUT", Path: "/user/calls/{id}/legs/{leg}", Name: "updateCallLeg", Tag: tag,
		NotFound: "Leg not found", Summary: "Change what a supervisor or third person does: listen, whisper, talk or take over"}, a.updateCallLeg)
	handle(a, op{Method: "PATCH", Path: "/user/calls/{id}/legs/{leg}", Name: "reconnectCallLeg", Tag: tag,
		NotFound: "Leg not found", Status: 200, Raw: fragmentType, Stream: fragmentType,
		Summary: "Connect the browser of a leg anew, after its network has changed (RFC 9725, section 4.3): " +
			"If-Match is * or the ETag of the answer"},
		a.reconnectCallLeg)
	handle(a, op{Method: "DELETE", Path: "/user/calls/{id}/legs/{leg}", Name: "hangUpCallLeg", Tag: tag,
		NotFound: "Leg not found", Summary: "Hang up on a supervisor or third person"}, a.hangUpCallLeg)
	handle(a, op{Method: "GET", Path: "/user/calls/{id}/events", Name: "followCall", Tag: tag, NotFound: missing,
		Stream: "text/event-stream", Summary: "Follow a call live (server-sent events)"}, a.followCall)
	handle(a, op{Method: "GET", Path: "/user/calls/{id}/sip", Name: "listCallSIP", Tag: tag, NotFound: missing,
		Summary: "The SIP messages of a telephone call that is over, in order"}, a.listCallSIP)
	handle(a, op{Method: "GET", Path: "/user/calls/{id}/recording", Name: "getRecording", Tag: tag,
		NotFound: missing, Stream: "audio/wav", Summary: "The recording, as WAV"}, a.getRecording)
	handle(a, op{Method: "GET", Path: "/recordings/{id}/{expires}/{signature}", Name: "getLinkedRecording",
		Tag: tag, NotFound: "Recording not found", Access: anybody, Stream: "audio/wav",
		Summary: "The recording that a call's recording_url leads to"}, a.getLinkedRecording)
	handle(a, op{Method: "GET", Path: "/user/calls/{id}/legs/{leg}/recording", Name: "getLegRecording", Tag: tag,
		NotFound: "Leg not found", Stream: "audio/wav",
		Summary: "The recording of somebody who was called in, as WAV: left is what they said, right what they heard"}, a.getLegRecording)
	handle(a, op{Method: "GET", Path: "/recordings/{id}/legs/{leg}/{expires}/{signature}", Name: "getLinkedLegRecording",
		Tag: tag, NotFound: "Recording not found", Access: anybody, Stream: "audio/wav",
		Summary: "The recording that a leg's recording_url leads to"}, a.getLinkedLegRecording)
}

type newCall struct {
	Body struct {
		PhoneNumber  string            `json:"phone_number" required:"true" maxLength:"32" format:"phone" doc:"Whom to call, in international format (E.164), or as it is dialled in your country."`
		AssistantID  int64             `json:"assistant_id" required:"true" format:"assistant" doc:"One of your active outbound assistants."`
		Variables    map[string]string `json:"variables" maxProperties:"200" format:"variables" doc:"Values of {{name}} in the prompt and the initial message."`
		SIPHeaders   map[string]string `json:"sip_headers" maxProperties:"20" doc:"X- headers of the call's INVITE; {{name}} stands for variables. They override the trunk's headers of the same name."`
		HideCallerID *bool             `json:"hide_caller_id" doc:"Whether the calling number is hidden from the person called; by default as the trunk says."`
	}
}

type startedCall struct {
	Message string            `json:"message"`
	Data    struct{}          `json:"data"`
	CallID  int64             `json:"call_id"`
	Status  parley.CallStatus `json:"status"`
}

func (a *API) makeCall(ctx context.Context, r *request, in *newCall) (*startedCall, error) {
	var wrong parley.Fields
	if parley.CheckSIPHeaders("sip_headers", in.Body.SIPHeaders, &wrong); len(wrong) > 0 {
		return nil, wrong.Err()
	}
	c, err := a.Calls.Start(ctx, call.Order{UserID: r.UserID(), AssistantID: in.Body.AssistantID, To: in.Body.PhoneNumber,
		Variables: in.Body.Variables, SIPHeaders: in.Body.SIPHeaders, HideCallerID: in.Body.HideCallerID})
	if err != nil {
		return nil, err
	}
	return &startedCall{Message: "Call initiated successfully", CallID: c.ID, Status: c.Status}, nil
}

// shownCall is a call as answers show it.
type shownCall struct {
	parley.Call
	Transcript      string           `json:"transcript" doc:"A line per turn: \"AI: …\" or \"Customer: …\", as it was heard."`
	TotalCost       parley.Money     `json:"total_cost"`
	CostBreakdown   parley.CallCosts `json:"cost_breakdown"`
	WebhookResponse any              `json:"webhook_response" doc:"{status, body} of the answer to the post-call event; {} without one."`
	RecordingURL    string           `json:"recording_url,omitempty" doc:"A signed link that holds for a week; absent without a recording."`
	Snippet         []search.Piece   `json:"snippet,omitempty" doc:"With search=: where the words were said, in pieces."`
	Legs            []parley.CallLeg `json:"legs,omitempty" doc:"Who was added to the call, for a warm transfer, as a supervisor or as a guest; only when one call is read."`
}

func (a *API) show(r *http.Request, c parley.Call, response *parley.WebhookResponse) shownCall {
	if c.Status.Live() {
		c.Duration = c.Talked(parley.Now()) // so far
	}
	out := shownCall{Call: c, Transcript: parley.CallTranscript(c.Turns), TotalCost: c.TotalCost(),
		CostBreakdown: c.Costs(), WebhookResponse: struct{}{}}
	if response != nil {
		out.WebhookResponse = response
	}
	if path := a.Calls.RecordingPath(&c); path != "" {
		out.RecordingURL = a.baseURL(r) + "/api" + path
	}
	return out
}

type callQuery struct {
	pageQuery
	dateQuery
	Status      string `query:"status" enum:"initiated,ringing,in-progress,completed,busy,no-answer,failed,canceled,ended,ended_by_customer,ended_by_assistant" doc:"ended is completed; ended_by_customer and ended_by_assistant are the completed calls in which that side hung up."`
	Type        string `query:"type" enum:"inbound,outbound,web"`
	PhoneNumber string `query:"phone_number" maxLength:"32" reads:"phone" doc:"Only calls with this customer."`
	Search      string `query:"search" maxLength:"200" doc:"Only calls whose transcript has all of these words, in any of their English forms. A call can be found a moment after its end."`
	AssistantID int64  `query:"assistant_id" format:"assistant"`
	CampaignID  int64  `query:"campaign_id"`
	NumberID    int64  `query:"phone_number_id" doc:"Only calls from or to this number of yours."`
	Reason      string `query:"ended_reason" maxLength:"32" doc:"Only calls that ended for this reason."`
	AnsweredBy  string `query:"answered_by" enum:"human,machine,unknown,nobody,telephone,voicemail,queue" doc:"Who answered, or had the call at its end."`
	Sentiment   string `query:"sentiment" enum:"positive,neutral,negative"`
	Outcome     string `query:"outcome" enum:"success,partial,failure"`
	SlowerThan  int64  `query:"slower_than_ms" minimum:"1" doc:"Only calls with a reply slower than this."`
	Test        *bool  `query:"test" doc:"true: test calls alone; false: none."`
}

// filter is what the store is asked for.
func (q *callQuery) filter(userID int64) store.CallFilter {
	from, to := q.bounds()
	status, hungUp := parley.CallStatus(q.Status), parley.EndedReason("")
	switch q.Status {
	case "ended":
		status = parley.CallCompleted
	case "ended_by_customer":
		status, hungUp = parley.CallCompleted, parley.CustomerHangup
	case "ended_by_assistant":
		status, hungUp = parley.CallCompleted, parley.AssistantHangup
	}
	return store.CallFilter{Status: status, HungUp: hungUp, Type: parley.CallType(q.Type),
		Phone: q.PhoneNumber, AssistantID: q.AssistantID,
		CampaignID: q.CampaignID, NumberID: q.NumberID, Reason: parley.EndedReason(q.Reason), Answerer: q.AnsweredBy,
		Sentiment: q.Sentiment, Outcome: q.Outcome, SlowerThan: q.SlowerThan, Test: q.Test,
		Words: search.Query(userID, q.Search), From: from, To: to}
}

func (a *API) listCalls(ctx context.Context, r *request, in *callQuery) (*Paginated[shownCall], error) {
	if err := a.ownFilters(ctx, r, in.AssistantID, in.CampaignID); err != nil {
		return nil, err
	}
	p := in.page(15)
	list, total, err := a.DB.Calls(ctx, r.UserID(), in.filter(r.UserID()), p)
	if err != nil {
		return nil, err
	}
	ids := make([]int64, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	responses, err := a.DB.WebhookResponses(ctx, r.UserID(), ids)
	if err != nil {
		return nil, err
	}
	rows := make([]shownCall, len(list))
	for i, c := range list {
		rows[i] = a.show(r.Request, c, responses[c.ID])
		rows[i].Snippet = search.InCall(search.Query(r.UserID(), in.Search), &c)
	}
	e := envelope(a, r.Request, rows, total, p)
	return &e, nil
}

func (a *API) getCall(ctx context.Context, r *request, in *byID) (*shownCall, error) {
	c, err := a.Calls.Now(ctx, r.UserID(), in.ID)
	if err != nil {
		return nil, err
	}
	response, err := a.DB.WebhookResponse(ctx, r.UserID(), c.ID)
	if err != nil {
		return nil, err
	}
	out := a.show(r.Request, *c, response)
	out.Legs, err = a.DB.CallLegs(ctx, r.UserID(), c.ID)
	a.Calls.LinkLegs(out.Legs, a.baseURL(r.Request)+"/api")
	return &out, err
}

func (a *API) listCallSIP(ctx context.Context, r *request, in *byID) (*listOf[parley.SIPMessage], error) {
	list, err := a.DB.CallSIP(ctx, r.UserID(), in.ID)
	return &listOf[parley.SIPMessage]{list}, err
}

func (a *API) deleteCall(ctx context.Context, r *request, in *byID) (*notice, error) {
	return &notice{"Call deleted successfully"}, a.Calls.Delete(ctx, r.UserID(), in.ID)
}

func (a *API) hangUpCall(ctx context.Context, r *request, in *byID) (*notice, error) {
	return &notice{"Call hung up successfully"}, a.Calls.Hangup(ctx, r.UserID(), in.ID)
}

// callEnd is the data of a call's last event.
type callEnd struct {
	Status      parley.CallStatus  `json:"status"`
	EndedReason parley.EndedReason `json:"ended_reason"`
	EndedDetail *string            `json:"ended_detail"`
	Duration    int64              `json:"duration"`
}

// follower sends what a reader of a call's events has not seen.
type follower struct {
	s      *web.Stream
	status parley.CallStatus
	turns  int // sent

	sound bool // wanted
	told  time.Time
}

// soundAgain is how often a reader is told how the sound is.
const soundAgain = time.Second

// hear sends how the sound is, if that is wanted and due.
func (f *follower) hear(c *parley.Call) {
	if f.sound && c.Media != nil && time.Since(f.told) >= soundAgain {
		f.told = time.Now()
		f.s.Send("media", "", c.Media)
	}
}

// catchUp sends how the call stands; it is over when the answer is true.
func (f *follower) catchUp(c *parley.Call) (over bool) {
	if c.Status != f.status {
		f.status = c.Status
		f.s.Send("status", "", map[string]parley.CallStatus{"status": c.Status})
	}
	f.hear(c)
	for ; f.turns < len(c.Turns); f.turns++ {
		f.s.Send("turn", strconv.Itoa(f.turns+1), c.Turns[f.turns])
	}
	if c.EndedAt != 0 {
		f.s.Send("end", "", callEnd{c.Status, c.EndedReason, c.EndedDetail, c.Duration})
	}
	return c.EndedAt != 0
}

type callEvents struct {
	ID    int64 `path:"id"`
	Media bool  `query:"media" doc:"Also send media events: how the sound of a live telephone call is, about once a second, as in media of the call."`
}

// followCall sends how a call stands, with its turns so far (or those after the one that Last-Event-ID names), and what
// happens in it until its end. Words that are still being spoken come only from the node that has the call; from
// another node, whole turns arrive within about a second.
func (a *API) followCall(ctx context.Context, r *request, in *callEvents) (*struct{}, error) {
	leave, err := a.Front.Enter(a.Streams, r.Request)
	if err != nil {
		return nil, err
	}
	defer leave()
	events, stop, ok := a.Hub.Listen(call.Topic(in.ID), maxListeners)
	if !ok {
		return nil, &auth.LimitError{RetryAfter: 10}
	}
	defer stop()
	c, err := a.Calls.Now(ctx, r.UserID(), in.ID)
	if err != nil {
		return nil, err
	}
	f := &follower{s: web.NewStream(r.W), sound: in.Media}
	if last, err := strconv.Atoi(r.Header.Get("Last-Event-ID")); err == nil && last > 0 {
		f.turns = last
	}
	f.s.Comment("following")
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	life := time.NewTimer(web.StreamLife)
	defer life.Stop()
	stopping := a.stopping
	for {
		over := f.catchUp(c)
		if f.s.Flush() != nil || over {
			return nil, errAnswered
		}
		select {
		case <-ctx.Done():
			return nil, errAnswered
		case <-life.C:
			return nil, errAnswered
		case <-stopping: // a call of this node's is followed to its end, for which the stop waits; another's goes on elsewhere
			if a.Calls.Here(in.ID) == nil {
				return nil, errAnswered
			}
			stopping = nil
			continue
		case e := <-events:
			switch e.Kind {
			case call.Partial:
				f.s.Send("partial", "", map[string]any{"text": e.Data})
				continue
			case call.Tool, call.Switch:
				f.s.Send(e.Kind, "", e.Data)
				continue
			case call.Leg:
				f.s.Send("leg", "", e.Data)
				continue
			case call.Status, call.Turn:
				if now := a.Calls.Here(in.ID); now != nil {
					c = now
					continue
				}
			}
		case <-tick.C:
			if !a.stands(r) {
				return nil, errAnswered
			}
			f.s.Comment("")
		}
		if c, err = a.Calls.Now(ctx, r.UserID(), in.ID); err != nil {
			return nil, errAnswered // the reader comes back with Last-Event-ID, or finds it deleted
		}
	}
}

func (a *API) getRecording(ctx context.Context, r *request, in *byID) (*struct{}, error) {
	c, err := a.DB.Call(ctx, r.UserID(), in.ID)
	if err != nil {
		return nil, err
	}
	return nil, a.sendRecording(ctx, r, c)
}

type recordingLink struct {
	ID        int64  `path:"id"`
	Expires   int64  `path:"expires"`
	Signature string `path:"signature"`
}

func (a *API) getLinkedRecording(ctx context.Context, r *request, in *recordingLink) (*struct{}, error) {
	c, err := a.Calls.LinkedCall(ctx, in.ID, in.Expires, in.Signature)
	if err != nil {
		return nil, err
	}
	return nil, a.sendRecording(ctx, r, c)
}

// sendRecording streams a call's recording, or the range of it that is asked for.
func (a *API) sendRecording(ctx context.Context, r *request, c *parley.Call) error {
	o, err := a.Calls.OpenRecording(ctx, c)
	if err != nil {
		return err
	}
	defer o.Close()
	web.SendRecording(r.W, r.Request, fmt.Sprintf("call-%d", c.ID), parley.Time(c.EndedAt).Time(), o)
	return errAnswered
}
