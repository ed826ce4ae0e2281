package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"parley/internal/assistant"
	"parley/internal/auth"
	"parley/internal/call"
	"parley/internal/event"
	"parley/internal/form"
	"parley/internal/node"
	"parley/internal/parley"
	"parley/internal/rtc"
	"parley/internal/web"
)

const (
	sdpType      = "application/sdp"
	fragmentType = "application/trickle-ice-sdpfrag" // RFC 8840
	sdpLimit     = 64 << 10

	// variablesHeader carries the variables of a web call, whose body is the offer: JSON, percent-encoded.
	variablesHeader = "Parley-Variables"

	// toolsHeader names the tools of kind client that the page runs, with commas between them.
	toolsHeader = "Parley-Client-Tools"
)

func (a *API) webCallRoutes() {
	const tag = "Web calls"
	handle(a, op{Method: "POST", Path: "/web-calls/{id}", Name: "startWebCall", Tag: tag,
		NotFound: assistantMissing, Status: 201, Family: statuses, Access: public, Limit: a.limitCreate,
		Raw: sdpType, Stream: sdpType,
		Summary: "Call an assistant from a browser (WHIP, RFC 9725): an SDP offer in, the answer out, Location is the call. " +
			"The header Parley-Variables may hold variables (JSON, percent-encoded)"}, a.startWebCall)
	handle(a, op{Method: "PATCH", Path: "/web-calls/{id}/{session}", Name: "reconnectWebCall", Tag: tag,
		NotFound: "Call not found", Status: 200, Family: statuses, Access: public, Limit: a.limitVisitor, Raw: fragmentType, Stream: fragmentType,
		Summary: "Connect a call from a browser anew, after its network has changed (RFC 9725, section 4.3): " +
			"If-Match is * or the ETag of the answer"},
		a.reconnectWebCall)
	handle(a, op{Method: "DELETE", Path: "/web-calls/{id}/{session}", Name: "endWebCall", Tag: tag,
		NotFound: "Call not found", Family: statuses, Access: public, Summary: "Hang up a call from a browser"},
		a.endWebCall)
}

func (a *API) startWebCall(ctx context.Context, r *request, in *byText) (*struct{}, error) {
	s, err := a.onWebsite(ctx, r, in.ID, a.mayBegin)
	if err != nil {
		return nil, err
	}
	sent, err := sentVariables(r.Header.Get(variablesHeader))
	if err != nil {
		return nil, err
	}
	vars, visitors, err := given(r, s, sent)
	if err != nil {
		return nil, err
	}
	tools, err := sentTools(r.Header.Get(toolsHeader))
	if err != nil {
		return nil, err
	}
	begin := beginning(a.Calls.Web)
	if auth.IsShare(in.ID) {
		begin = a.Calls.WebTest
	}
	err = a.answerBrowser(r.W, r.Request, s, begin, call.Visitor{Variables: vars, Names: visitors, Tools: tools}, visitorView,
		func(session string) string { return a.baseURL(r.Request) + "/api/web-calls/" + in.ID + "/" + session })
	if err != nil {
		return nil, err
	}
	return nil, errAnswered
}

// AnswerBrowser begins a call of an assistant's own user from the offer that a request holds, and answers it; place
// is the call's address, by its secret, with which Config.Browsers hangs it up. An error is the caller's to tell;
// without one the answer is sent.
func (a *API) AnswerBrowser(w http.ResponseWriter, r *http.Request, s *parley.Assistant,
	place func(session string) string) error {
	vars, err := sentVariables(r.Header.Get(variablesHeader))
	if err != nil {
		return err
	}
	return a.answerBrowser(w, r, s, a.Calls.Web, call.Visitor{Variables: vars}, ownerView, place)
}

// beginning prepares a call from a browser.
type beginning func(context.Context, *parley.Assistant, call.Visitor) (*call.WebCall, error)

func (a *API) answerBrowser(w http.ResponseWriter, r *http.Request, s *parley.Assistant, begin beginning,
	in call.Visitor, sees view, place func(session string) string) error {
	if a.Browsers == nil {
		return errNoBrowsers
	}
	offer, err := a.readOffer(w, r)
	if err != nil {
		return err
	}
	offer.Tools = len(in.Tools) > 0
	visit, err := begin(r.Context(), s, in)
	if err != nil {
		return noLine(err)
	}
	return a.connect(w, r, offer, func(l *rtc.Leg, err error) { a.visit(visit, l, sees, err) }, visit.Drop,
		func(leg *rtc.Leg) string { return place(a.session(leg.ID)) })
}

// session names a call from a browser at whichever process: by its secret, and the process that has it.
func (a *API) session(secret string) string {
	if a.Node == nil {
		return secret
	}
	return secret + "~" + a.Node.ID
}

// secretOf is the secret that a session names, and the process that has it; "" for this one.
func (a *API) secretOf(session string) (secret, at string) {
	secret, at, _ = strings.Cut(session, "~")
	if a.Node == nil || !a.Node.Knows(at) { // then the secret leads nowhere here, either
		at = ""
	}
	return secret, at
}

// What processes ask of each other about browsers' calls.
const (
	askHangup    = "hangup-browser"    // the secret; whether there was such a call
	askReconnect = "reconnect-browser" // reconnection; reconnected

	askToolAnswer = "tool-answer" // clientAnswer; whether it was awaited
)

// reconnection is what a browser wants that connects anew.
type reconnection struct{ Secret, Match, Fragment string }

// reconnected is what it is answered; without a fragment nothing has changed.
type reconnected struct{ Tag, Fragment string }

// AnswerNodes has this process do what others ask about the browsers' calls that it has.
func (a *API) AnswerNodes(n *node.Node) {
	n.Handle(askHangup, func(_ context.Context, _ int64, body []byte) (any, error) {
		var secret string
		err := json.Unmarshal(body, &secret)
		return a.Browsers != nil && a.Browsers.Hangup(secret), err
	})
	n.Handle(askToolAnswer, func(_ context.Context, _ int64, body []byte) (any, error) {
		var in clientAnswer
		err := json.Unmarshal(body, &in)
		return err == nil && a.Chat.ToolAnswered(in.Conversation, in.Call, in.Result), err
	})
	n.Handle(askReconnect, func(ctx context.Context, _ int64, body []byte) (any, error) {
		var in reconnection
		if err := json.Unmarshal(body, &in); err != nil {
			return nil, err
		}
		return a.reconnect(ctx, in)
	})
}

// HangupBrowser ends a browser's call, by its session; false when there is none.
func (a *API) HangupBrowser(ctx context.Context, session string) bool {
	secret, at := a.secretOf(session)
	if at == "" {
		return a.Browsers != nil && a.Browsers.Hangup(secret)
	}
	var was bool
	err := a.Node.Ask(ctx, at, 0, askHangup, secret, &was)
	return err == nil && was
}

// connect answers a browser's offer: then is told when sound can flow, or why it won't; drop, where it never gets so
// far. place is the leg's address.
func (a *API) connect(w http.ResponseWriter, r *http.Request, offer *rtc.Offer, then func(*rtc.Leg, error),
	drop func(error), place func(*rtc.Leg) string) error {
	var leg *rtc.Leg
	answered := false
	defer func() { // also when somebody panics
		switch {
		case answered:
		case leg == nil:
			drop(parley.Rejected)
		default:
			leg.Hangup()
		}
	}()
	offer.From = a.Front.Client(r)
	leg, answer, err := a.Browsers.Answer(r.Context(), offer, then)
	if errors.Is(err, rtc.ErrMany) {
		return &auth.LimitError{RetryAfter: int(a.Browsers.Connect / time.Second)}
	}
	if err != nil {
		return err
	}
	for _, server := range leg.Helpers(a.relayHost(r)) {
		for _, link := range server.Links() {
			w.Header().Add("Link", link)
		}
	}
	w.Header().Set("Location", place(leg))
	sendDescription(w, http.StatusCreated, sdpType, leg.Connection().Tag(), answer)
	answered = true
	return nil
}

// relayHost is the host and port at which a request's browser reaches our TURN relay: the HTTPS server. "": it doesn't.
func (a *API) relayHost(r *http.Request) string {
	if base, err := url.Parse(a.baseURL(r)); err == nil && base.Scheme == "https" {
		return net.JoinHostPort(base.Hostname(), cmp.Or(base.Port(), "443")) // 5349 is where turns: would go
	}
	return ""
}

// sendDescription sends what a browser connects by; tag names the connection. A browser that left is seen by its silence.
func sendDescription(w http.ResponseWriter, status int, kind, tag, text string) {
	h := w.Header()
	h.Set("Content-Type", kind)
	if tag != "" {
		h.Set("ETag", tag)
	}
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	io.WriteString(w, text)
}

func (a *API) reconnectWebCall(_ context.Context, r *request, in *struct {
	ID      string `path:"id"`
	Session string `path:"session"`
}) (*struct{}, error) {
	if err := a.ReconnectBrowser(r.W, r.Request, in.Session); err != nil {
		return nil, err
	}
	return nil, errAnswered
}

// ReconnectBrowser connects a browser's call anew, by its secret. An error is the caller's to tell; without one the answer
// is sent.
func (a *API) ReconnectBrowser(w http.ResponseWriter, r *http.Request, session string) error {
	text, err := a.readDescription(w, r, fragmentType, "an SDP fragment")
	if err != nil {
		return err
	}
	secret, at := a.secretOf(session)
	in := reconnection{secret, r.Header.Get("If-Match"), text}
	var out *reconnected
	if at == "" {
		out, err = a.reconnect(r.Context(), in)
	} else {
		err = a.Node.Ask(r.Context(), at, 0, askReconnect, in, &out)
	}
	switch {
	case err != nil:
		return err
	case out.Fragment == "": // it has told where it is reached, which its packets show
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	sendDescription(w, http.StatusOK, fragmentType, out.Tag, out.Fragment)
	return nil
}

// reconnect connects a call anew that this process has.
func (a *API) reconnect(ctx context.Context, in reconnection) (*reconnected, error) {
	gone := parley.Errorf(parley.NotFound, "Call not found")
	if a.Browsers == nil {
		return nil, gone
	}
	leg := a.Browsers.Leg(in.Secret)
	if leg == nil {
		return nil, gone
	}
	ours, changed, err := leg.Reconnect(ctx, in.Match, in.Fragment)
	switch {
	case errors.Is(err, rtc.ErrOver):
		return nil, gone
	case err != nil:
		return nil, err
	case !changed: // it has told where it is reached, which its packets show
		return &reconnected{}, nil
	}
	return &reconnected{ours.Tag(), ours.String()}, nil
}

// noLine is the refusal of a call for which the plan has no room: to a visitor of a website it is a matter of time,
// not of a right.
func noLine(err error) error {
	var e *parley.Error
	if errors.As(err, &e) && e.Kind == parley.Forbidden {
		return parley.Errorf(parley.Unavailable, "All lines are busy. Please try again in a moment.")
	}
	return err
}

// readOffer reads a body that is an SDP offer.
func (a *API) readOffer(w http.ResponseWriter, r *http.Request) (*rtc.Offer, error) {
	text, err := a.readDescription(w, r, sdpType, "an SDP offer")
	if err != nil {
		return nil, err
	}
	return rtc.ReadOffer(text)
}

var errNoBrowsers = parley.Errorf(parley.Unavailable, "This server does not accept calls from browsers.")

// readDescription reads a body of a kind, which is called what.
func (a *API) readDescription(w http.ResponseWriter, r *http.Request, kind, what string) (string, error) {
	if a.Browsers == nil && a.Node == nil {
		return "", errNoBrowsers
	}
	if media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); !strings.EqualFold(strings.TrimSpace(media), kind) {
		return "", parley.Errorf(parley.Unsupported, "The body must be %s, with Content-Type: %s.", what, kind)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, sdpLimit))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return "", parley.Errorf(parley.TooLarge, "The body is too large to be %s.", what)
	case err != nil:
		return "", parley.Errorf(parley.Refused, "The body can't be read.")
	}
	return string(body), nil
}

// sentVariables reads the header of that name.
func sentVariables(text string) (vars map[string]string, err error) {
	if text == "" {
		return nil, nil
	}
	var sent struct {
		Variables map[string]string `json:"variables" maxProperties:"200" format:"variables"`
	}
	plain, err := url.PathUnescape(text)
	if err == nil {
		var tree map[string]any
		if tree, err = parseObject([]byte(plain)); err == nil {
			err = form.Bind(map[string]any{"variables": tree}, &sent, true).Err()
		}
	}
	if err != nil {
		return nil, parley.Errorf(parley.Invalid, "The %s header must be an object of at most 200 texts, as percent-encoded JSON.",
			variablesHeader)
	}
	return sent.Variables, nil
}

// sentTools reads the header of that name.
func sentTools(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	var sent struct {
		Names []string `json:"names" maxItems:"64" maxLength:"255"`
	}
	list := []any{}
	for name := range strings.SplitSeq(text, ",") {
		list = append(list, strings.TrimSpace(name))
	}
	if form.Bind(map[string]any{"names": list}, &sent, true).Err() != nil {
		return nil, parley.Errorf(parley.Invalid, "The %s header must be the names of at most 64 tools, with commas between them.", toolsHeader)
	}
	return sent.Names, nil
}

// visit has the conversation on a browser's leg, and tells the browser what happens, until it is over.
func (a *API) visit(v *call.WebCall, leg *rtc.Leg, sees view, err error) {
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), enterTime)
		err = v.Enter(ctx)
		cancel()
		if err != nil {
			turnAway(leg, noLine(err))
		}
	}
	if err != nil {
		v.Drop(err)
		return
	}
	events, stop, ok := a.Hub.Listen(call.Topic(v.ID), maxListeners)
	if !ok { // nobody knows of the call yet
		slog.Error("follow a web call", "call", v.ID)
	}
	if stop != nil {
		defer stop()
	}
	v.Begin(leg)
	for {
		select {
		case e := <-events:
			if told := sees(e); told != nil {
				leg.Tell(told)
			}
		case ask := <-v.Asks():
			asked := struct {
				Type string `json:"type"`
				assistant.ClientCall
			}{"tool_call", ask}
			leg.Tell(asked)
		case got := <-leg.Results():
			v.ToolAnswered(got.ID, clientResult(got.Result, got.Error))
		case <-leg.Done():
			return
		case <-v.Done():
			leg.Hangup() // where it was never run
			return
		}
	}
}

const (
	enterTime = 10 * time.Second // for the database
	awayTime  = 5 * time.Second  // for a browser to hear why it is turned away
)

// turnAway tells a browser that is connected why it can't be taken after all: the last line or the last money went to
// somebody else meanwhile.
func turnAway(leg *rtc.Leg, err error) {
	code, text := 500, "The call could not be started. Please try again."
	var e *parley.Error
	if errors.As(err, &e) {
		code, text = web.Status(e.Kind), e.Message
	} else {
		slog.Error("begin a call from a browser", "error", err)
	}
	leg.Tell(map[string]any{"type": "refused", "status": code, "error": text})
	select {
	case <-leg.Done(): // it has understood
	case <-time.After(awayTime):
	}
	leg.Hangup()
}

// view is what the browser in a call is told of an event; nil: nothing.
type view func(e event.Event) any

// visitorView is what a visitor may know: what is said and how quick it was, and that a tool is used, but not what it
// says.
func visitorView(e event.Event) any {
	switch e.Kind {
	case call.Partial:
		return map[string]any{"type": "partial", "text": e.Data}
	case call.Turn:
		if turn, ok := e.Data.(parley.CallTurn); ok && !turn.Whispered {
			return struct {
				Type string `json:"type"`
				parley.CallTurn
			}{"turn", turn}
		}
	case call.Tool:
		if tool, ok := e.Data.(parley.CallTool); ok {
			return map[string]any{"type": "tool", "name": tool.Name}
		}
	}
	return nil
}

// maxResult is how many characters of a tool's arguments and of its result a browser is sent: a message of a data
// channel is no place for more, and the call's page has the whole.
const maxResult = 4000

// ownerView is what the assistant's own user may know: what a tool was given and what it answered, too.
func ownerView(e event.Event) any {
	tool, ok := e.Data.(parley.CallTool)
	if e.Kind != call.Tool || !ok {
		return visitorView(e)
	}
	return map[string]any{"type": "tool", "name": tool.Name, "failed": tool.Failed(),
		"arguments": shortened(string(tool.Arguments)), "result": shortened(tool.Result)}
}

func shortened(text string) string {
	if runes := []rune(text); len(runes) > maxResult {
		return string(runes[:maxResult]) + "…"
	}
	return text
}

func (a *API) endWebCall(ctx context.Context, _ *request, in *struct {
	ID      string `path:"id"`
	Session string `path:"session"`
}) (*statusOnly, error) {
	if !a.HangupBrowser(ctx, in.Session) {
		return nil, parley.Errorf(parley.NotFound, "Call not found")
	}
	return &statusOnly{true}, nil
}

type statusOnly struct {
	Status bool `json:"status"`
}
