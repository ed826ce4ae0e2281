package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"parley/internal/assistant"
	"parley/internal/auth"
	"parley/internal/call"
	"parley/internal/chat"
	"parley/internal/parley"
	"parley/internal/search"
	"parley/internal/store"
	"parley/internal/web"
)

const conversationMissing = "Conversation not found"

func (a *API) conversationRoutes() {
	const tag = "Conversations"
	handle(a, op{Method: "POST", Path: "/conversations", Name: "createConversation", Tag: tag, Family: statuses,
		Access: public, Limit: a.limitCreate, Summary: "Start a conversation (the widget does, without a credential)"}, a.createConversation)
	handle(a, op{Method: "GET", Path: "/conversations/{id}", Name: "getPublicConversation", Tag: tag,
		NotFound: conversationMissing, Family: statuses, Access: public, Summary: "Read a conversation"},
		a.getPublicConversation)
	handle(a, op{Method: "POST", Path: "/conversations/{id}/messages", Name: "sendMessage", Tag: tag,
		NotFound: conversationMissing, Family: statuses, Access: public, Stream: "text/event-stream",
		Summary: "Send a message and get the reply, whole or (Accept: text/event-stream) as it forms"}, a.sendMessage)
	handle(a, op{Method: "POST", Path: "/conversations/{id}/tool-calls/{call}", Name: "answerToolCall", Tag: tag,
		NotFound: "Tool call not found", Family: statuses, Access: public,
		Summary: "Answer a call of a tool of kind client, which a reply's stream told as tool_call"}, a.answerToolCall)
	handle(a, op{Method: "GET", Path: "/conversations/{id}/events", Name: "followConversation", Tag: tag,
		NotFound: conversationMissing, Family: statuses, Access: public, Stream: "text/event-stream",
		Summary: "Follow a conversation live (server-sent events)"}, a.followConversation)

	handle(a, op{Method: "GET", Path: "/user/conversations", Name: "listConversations", Tag: tag,
		Summary: "List conversations"}, a.listConversations)
	handle(a, op{Method: "GET", Path: "/user/conversations/{id}", Name: "getConversation", Tag: tag,
		NotFound: conversationMissing, Summary: "Read a conversation with its history"}, a.getConversation)
	handle(a, op{Method: "DELETE", Path: "/user/conversations/{id}", Name: "deleteConversation", Tag: tag,
		NotFound: conversationMissing, Summary: "Delete a conversation"}, a.deleteConversation)
	handle(a, op{Method: "POST", Path: "/user/conversations/{id}/reply", Name: "replyInConversation", Tag: tag,
		NotFound: conversationMissing, Status: 201, Idempotent: true,
		Summary: "Reply in the assistant's place"}, a.humanReply)
	for i, prefix := range []string{"/user", "/automate"} {
		for _, on := range []bool{true, false} {
			word := map[bool]string{true: "enable", false: "disable"}[on]
			name := word + []string{"AI", "AIAutomated"}[i]
			handle(a, op{Method: "POST", Path: prefix + "/conversations/{id}/" + word + "-ai", Name: name, Tag: tag,
				NotFound: conversationMissing, Summary: "Turn the assistant's replies on or off"},
				func(ctx context.Context, r *request, in *byText) (*aiState, error) {
					if on {
						return &aiState{true, on}, a.Chat.HandBack(ctx, r.UserID(), in.ID)
					}
					var who *int64 // an automation hands over to whoever takes the conversation
					if prefix == "/user" {
						owner := r.Who.Person()
						who = &owner
					}
					return &aiState{true, on}, a.Chat.TakeOver(ctx, r.UserID(), in.ID, who)
				})
		}
	}
	for i, path := range []string{"/user/ai/generate-reply", "/ai/generate-reply"} {
		name := []string{"generateReply", "generateReplyShort"}[i]
		handle(a, op{Method: "POST", Path: path, Name: name, Tag: tag, Idempotent: true,
			Summary: "Generate a reply to a customer: one conversation per assistant and customer"}, a.generateReply)
	}
	handle(a, op{Method: "DELETE", Path: "/user/customers/{phone}", Name: "eraseCustomer", Tag: tag,
		Summary: "Erase a customer's data"}, a.eraseCustomer)
}

type byText struct {
	ID string `path:"id"`
}

// spoken is a message as a conversation's history shows it.
type spoken struct {
	Role          string                `json:"role"`
	Content       string                `json:"content"`
	FunctionCalls []parley.FunctionCall `json:"function_calls,omitempty"`
}

func lines(list []parley.Message) []spoken {
	out := make([]spoken, len(list))
	for i, m := range list {
		out[i] = spoken{m.Role, m.Content, m.FunctionCalls}
	}
	return out
}

type newConversation struct {
	Body struct {
		AssistantID string            `json:"assistant_id" required:"true" maxLength:"80" doc:"UUID of the assistant, or the token of a share link."`
		Type        string            `json:"type" default:"widget" enum:"widget,test" doc:"widget is charged; test is free and needs the owner's credential."`
		Variables   map[string]string `json:"variables" maxProperties:"200" format:"variables" doc:"Values of {{name}} in the prompt and the initial message."`
	}
}

type startedConversation struct {
	Status         bool     `json:"status"`
	ConversationID string   `json:"conversation_id"`
	History        []spoken `json:"history"`
}

func (a *API) createConversation(ctx context.Context, r *request, in *newConversation) (*startedConversation, error) {
	if auth.IsShare(in.Body.AssistantID) {
		return a.startShared(ctx, r, in)
	}
	kind := parley.ConversationType(in.Body.Type)
	if kind == parley.TestConversation && r.Who == nil {
		return nil, auth.ErrUnauthenticated
	}
	id, err := uuid.Parse(in.Body.AssistantID)
	if err != nil {
		return nil, parley.Errorf(parley.NotFound, assistantMissing)
	}
	assistant, err := a.DB.AssistantByUUID(ctx, id.String())
	if err != nil {
		return nil, err
	}
	if kind == parley.TestConversation {
		if assistant.UserID != r.UserID() {
			return nil, auth.ErrUnauthenticated
		}
	} else if err := a.mayBegin(r, assistant); err != nil {
		return nil, err
	}
	vars, visitors, err := given(r, assistant, in.Body.Variables)
	if err != nil {
		return nil, err
	}
	conv, history, err := a.Chat.Start(ctx, assistant, kind, vars, visitors...)
	if err != nil {
		return nil, err
	}
	return &startedConversation{true, conv.ID, lines(history)}, nil
}

// given are the variables that a request may bring to an assistant, and the names of those that are a visitor's: all
// of them, unless the assistant's owner asks.
func given(r *request, s *parley.Assistant, sent map[string]string) (vars map[string]string, visitors []string,
	err error) {
	if r.Who != nil && r.UserID() == s.UserID {
		return sent, nil, nil
	}
	var wrong parley.Fields
	vars = s.WidgetSettings.Answers(sent, &wrong)
	return vars, slices.Sorted(maps.Keys(vars)), wrong.Err()
}

// allowedOrigin judges the page that asks, by the Origin header that browsers send; our own pages are always allowed,
// and so is the assistant's owner with a credential. A program that sends no Origin is no page of an allowed site.
func (a *API) allowedOrigin(r *request, s *parley.Assistant) bool {
	if r.owns(s.UserID) || a.Front.Own(r.Request) {
		return true
	}
	from := web.Origin(r.Header.Get("Origin"))
	return from != "" && slices.ContainsFunc(s.WidgetSettings.AllowedOrigins,
		func(o string) bool { return web.Origin(o) == from })
}

// publicConversation is a conversation that may be read without a credential (widget), while its assistant is there
// for strangers, or whose owner asks.
func (a *API) publicConversation(ctx context.Context, r *request, id string) (*parley.Conversation, error) {
	conv, err := a.DB.PublicConversation(ctx, id)
	if err != nil {
		return nil, err
	}
	if r.owns(conv.UserID) {
		return conv, nil
	}
	if conv.SharedBy() != 0 {
		return conv, a.sharing(ctx, conv)
	}
	missing := parley.Errorf(parley.NotFound, conversationMissing)
	if conv.Type != parley.WidgetConversation {
		return nil, missing
	}
	switch s, err := a.DB.AssistantByUUID(ctx, conv.AssistantUUID); {
	case store.IsNotFound(err) || err == nil && s.Status != "active":
		return nil, missing
	case err != nil:
		return nil, err
	}
	return conv, nil
}

type publicConversation struct {
	Status    bool              `json:"status"`
	History   []spoken          `json:"history"`
	Variables map[string]string `json:"variables"`
}

func (a *API) getPublicConversation(ctx context.Context, r *request, in *byText) (*publicConversation, error) {
	conv, err := a.publicConversation(ctx, r, in.ID)
	if err != nil {
		return nil, err
	}
	if !r.owns(conv.UserID) {
		if _, err := a.limitShown.Take(a.Front.Client(r.Request), time.Now()); err != nil {
			return nil, err
		}
	}
	list, err := a.DB.Messages(ctx, conv.ID)
	return &publicConversation{true, lines(list), conv.Variables}, err
}

type newMessage struct {
	byText
	Body struct {
		Message     string   `json:"message" required:"true" maxLength:"2000"`
		ClientTools []string `json:"client_tools" maxItems:"64" maxLength:"255" doc:"Names of those tools of kind client that this client runs. With Accept: text/event-stream, the stream tells it each call (tool_call)."`
	}
}

type answeredMessage struct {
	Status        bool                  `json:"status"`
	Message       *string               `json:"message"`
	FunctionCalls []parley.FunctionCall `json:"function_calls"`
}

func answerOf(got chat.Answer) *answeredMessage {
	out := &answeredMessage{Status: true, FunctionCalls: []parley.FunctionCall{}}
	if got.Message != nil {
		out.Message = &got.Message.Content
		out.FunctionCalls = append(out.FunctionCalls, got.Message.FunctionCalls...)
	}
	return out
}

func (a *API) sendMessage(ctx context.Context, r *request, in *newMessage) (*answeredMessage, error) {
	conv, err := a.publicConversation(ctx, r, in.ID)
	if err != nil {
		return nil, err
	}
	if err := a.limitSaying(r, conv); err != nil {
		return nil, err
	}
	streams := accepts(r.Request, "text/event-stream")
	if !streams { // it could not be asked
		in.Body.ClientTools = nil
	}
	w, err := a.Chat.Send(ctx, conv, in.Body.Message, in.Body.ClientTools...)
	if err != nil {
		return nil, err
	}
	defer w.Leave()
	if !streams {
		got, err := w.Wait(ctx)
		return answerOf(got), err
	}
	return nil, a.streamReply(ctx, r, w)
}

// limitSaying counts a message against its conversation, and a visitor's also against the address and the assistant.
func (a *API) limitSaying(r *request, conv *parley.Conversation) error {
	now := time.Now()
	if _, err := a.limitMessage.Take(conv.ID, now); err != nil || r.owns(conv.UserID) {
		return err
	}
	if _, err := a.limitVisitor.Take(a.Front.Client(r.Request), now); err != nil {
		return err
	}
	_, err := a.limitHeard.Take(conv.AssistantUUID, now)
	return err
}

// accepts says whether a request asks for a media type by name.
func accepts(r *http.Request, media string) bool {
	return slices.ContainsFunc(r.Header.Values("Accept"), func(v string) bool { return strings.Contains(v, media) })
}

// maxClientResult bounds what a client says of a tool, in bytes.
const maxClientResult = 64 << 10

// clientToolResult is what a client says of a tool that it has run.
type clientToolResult struct {
	byText
	Call string `path:"call"`
	Body struct {
		Result any    `json:"result" doc:"What the model is told: a text, or anything else as JSON; at most 64 KB."`
		Error  string `json:"error" maxLength:"2000" doc:"Why the tool failed, for the model."`
	}
}

// clientResult is what the model is told of a tool that a page has run: its text as it is, anything else as JSON, nothing of null.
func clientResult(raw json.RawMessage, failure string) assistant.ClientResult {
	out := assistant.ClientResult{Error: failure}
	if json.Unmarshal(raw, &out.Result) != nil {
		out.Result = string(raw)
	}
	return out
}

// clientAnswer is what a process asks of the one that makes a reply.
type clientAnswer struct {
	Conversation, Call string
	Result             assistant.ClientResult
}

func (a *API) answerToolCall(ctx context.Context, r *request, in *clientToolResult) (*statusOnly, error) {
	conv, err := a.publicConversation(ctx, r, in.ID)
	if err != nil {
		return nil, err
	}
	var raw bytes.Buffer
	enc := json.NewEncoder(&raw)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(in.Body.Result); err != nil {
		return nil, err
	}
	if raw.Len() > maxClientResult {
		return nil, parley.Errorf(parley.TooLarge, "The result is too large: %d KB is the most.", maxClientResult>>10)
	}
	call, at := a.secretOf(in.Call)
	answer := clientAnswer{conv.ID, call, clientResult(bytes.TrimSpace(raw.Bytes()), in.Body.Error)}
	if at == "" && a.Chat.ToolAnswered(answer.Conversation, answer.Call, answer.Result) {
		return &statusOnly{true}, nil
	}
	if !r.owns(conv.UserID) { // whoever guesses is slowed down, and whoever was asked is not
		if _, err := a.limitVisitor.Take(a.Front.Client(r.Request), time.Now()); err != nil {
			return nil, err
		}
	}
	was := false
	if at != "" {
		if err := a.Node.Ask(ctx, at, 0, askToolAnswer, answer, &was); err != nil {
			return nil, err
		}
	}
	if !was {
		return nil, parley.Errorf(parley.NotFound, "Tool call not found")
	}
	return &statusOnly{true}, nil
}

// streamReply sends a reply as it forms: delta, tool, tool_call, and done or error.
func (a *API) streamReply(ctx context.Context, r *request, w *chat.Waiter) error {
	s := web.NewStream(r.W)
	s.Comment("thinking") // the reader knows at once that the message has arrived
	if s.Flush() != nil {
		return errAnswered
	}
	for {
		pieces, done, got, err := w.Next(ctx)
		for _, p := range pieces {
			switch {
			case p.Ask != nil:
				ask := *p.Ask
				ask.ID = a.session(ask.ID)
				s.Send("tool_call", "", ask)
			case p.Call != nil:
				s.Send("tool", "", p.Call)
			default:
				s.Send("delta", "", map[string]string{"text": p.Text})
			}
		}
		switch {
		case done && err != nil:
			e := web.Known(r.Request, store.Told(err), broken)
			s.Send("error", "", statuses.shape(e))
			return errAnswered
		case done:
			s.Send("done", "", answerOf(got))
			return errAnswered
		}
		if s.Flush() != nil {
			return errAnswered // the reader left
		}
	}
}

// maxListeners is how many may follow one conversation on a node.
const maxListeners = 20

// followConversation sends what happens in a conversation from now on, or after the message that Last-Event-ID names.
func (a *API) followConversation(ctx context.Context, r *request, in *byText) (*struct{}, error) {
	conv, err := a.publicConversation(ctx, r, in.ID)
	if err != nil {
		return nil, err
	}
	leave, err := a.Front.Enter(a.Streams, r.Request)
	if err != nil {
		return nil, err
	}
	defer leave()
	events, stop, ok := a.Hub.Listen(conv.ID, maxListeners)
	if !ok {
		return nil, &auth.LimitError{RetryAfter: 10}
	}
	defer stop()
	last, err := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64)
	if err != nil || last < 0 {
		if last, err = a.DB.LastMessage(ctx, conv.ID); err != nil {
			return nil, err
		}
	}
	s := web.NewStream(r.W)
	s.Comment("following")
	on := conv.AIEnabled
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	life := time.NewTimer(web.StreamLife)
	defer life.Stop()
	for {
		list, err := a.DB.MessagesAfter(ctx, conv.ID, last)
		if err != nil {
			return nil, errAnswered // the reader comes back with Last-Event-ID
		}
		for _, m := range list {
			last = m.ID
			s.Send("message", strconv.FormatInt(m.ID, 10),
				map[string]any{"role": m.Role, "author": m.Author, "content": m.Content, "created_at": m.CreatedAt})
		}
		if s.Flush() != nil {
			return nil, errAnswered
		}
		select {
		case <-ctx.Done():
			return nil, errAnswered
		case <-a.stopping:
			return nil, errAnswered
		case <-life.C:
			return nil, errAnswered
		case e := <-events:
			switch e.Kind {
			case "typing":
				s.Send("typing", "", struct{}{})
			case "ai":
				on = e.Data.(bool)
				s.Send("ai", "", map[string]bool{"enabled": on})
			}
		case <-tick.C: // what other nodes did, and a sign of life
			now, err := a.publicConversation(ctx, r, conv.ID)
			if err != nil || !a.stands(r) {
				return nil, errAnswered
			}
			if now.AIEnabled != on {
				on = now.AIEnabled
				s.Send("ai", "", map[string]bool{"enabled": on})
			}
			s.Comment("")
		}
	}
}

// lookAgain is how often a live listener looks for what happened on other nodes.
const lookAgain = 2 * time.Second

type conversationQuery struct {
	pageQuery
	dateQuery
	Type          string `query:"type" enum:"test,widget,whatsapp,api"`
	AssistantID   int64  `query:"assistant_id" format:"assistant"`
	CustomerPhone string `query:"customer_phone" maxLength:"32" reads:"phone" doc:"Only with this customer."`
	SenderPhone   string `query:"whatsapp_sender_phone" maxLength:"32" reads:"phone" doc:"Only over this WhatsApp sender."`
	Search        string `query:"search" maxLength:"200" doc:"Only conversations that have all of these words, in any of their English forms. A message can be found a moment later."`
	Show          string `query:"show" enum:"needs_person,unassigned,mine" doc:"needs_person: only those in which a customer waits for a person, longest waiting first; unassigned: only those of them that nobody has taken; mine: only those that you have taken."`
	Identifier    string `query:"external_identifier" maxLength:"255" doc:"Only with this identifier in the channel: the customer_identifier of generate-reply, or a phone number."`
}

// filter is what the store is asked for.
func (q *conversationQuery) filter(r *request) store.ConversationFilter {
	from, to := q.bounds()
	f := store.ConversationFilter{Type: parley.ConversationType(q.Type), AssistantID: q.AssistantID,
		CustomerPhone: q.CustomerPhone, SenderPhone: q.SenderPhone, Identifier: q.Identifier,
		Words: search.Query(r.UserID(), q.Search), From: from, To: to}
	f.Narrow(q.Show, r.Who.Person())
	return f
}

// listedConversation is a conversation in a list.
type listedConversation struct {
	parley.Conversation
	Assignee   string         `json:"assignee,omitempty" doc:"The name of who has taken the conversation; absent where nobody has."`
	WaitsSince parley.Time    `json:"waits_since,omitempty" doc:"Since when the customer has been waiting for a person; absent if they are not."`
	Snippet    []search.Piece `json:"snippet,omitempty" doc:"With search=: where the words were said, in pieces."`
}

// foundIn are conversations with the places where it is said what is searched for.
func (a *API) foundIn(ctx context.Context, r *request, list []parley.Conversation, text string) ([]listedConversation, error) {
	words, rows, ids := search.Query(r.UserID(), text), make([]listedConversation, len(list)), make([]string, len(list))
	for i, c := range list {
		rows[i].Conversation, rows[i].Assignee, rows[i].WaitsSince, ids[i] = c, c.AssigneeName, c.WaitsSince, c.ID
	}
	if words == nil {
		return rows, nil
	}
	said, err := a.DB.Said(ctx, r.UserID(), ids)
	for i := range rows {
		rows[i].Snippet = search.InMessages(r.UserID(), words, said[rows[i].ID])
	}
	return rows, err
}

func (a *API) listConversations(ctx context.Context, r *request,
	in *conversationQuery) (*Paginated[listedConversation], error) {
	if err := a.ownFilters(ctx, r, in.AssistantID, 0); err != nil {
		return nil, err
	}
	p := in.page(15)
	list, total, err := a.DB.Conversations(ctx, r.UserID(), in.filter(r), p)
	if err != nil {
		return nil, err
	}
	rows, err := a.foundIn(ctx, r, list, in.Search)
	if err != nil {
		return nil, err
	}
	e := envelope(a, r.Request, rows, total, p)
	return &e, nil
}

type fullConversation struct {
	parley.Conversation
	History            []parley.Message  `json:"history"`
	Variables          map[string]string `json:"variables"`
	ExtractedVariables map[string]any    `json:"extracted_variables"`
	Notes              map[string]string `json:"extracted_variables_notes,omitempty" doc:"Of each value that is null in extracted_variables, why; absent where none is."`
	ExternalIdentifier *string           `json:"external_identifier"`
	Customer           *customer         `json:"customer"`
	EndedAt            parley.DateTime   `json:"ended_at"`
	Assignee           string            `json:"assignee,omitempty" doc:"The name of who has taken the conversation; absent where nobody has."`

	VendorUses     []parley.VendorUse    `json:"vendor_uses,omitempty" doc:"What its replies used of each provider; informational."`
	VendorSwitches []parley.VendorSwitch `json:"vendor_switches,omitempty" doc:"When a provider failed and another took over; at_ms counts from the start."`
}

type customer struct {
	Identifier  string  `json:"identifier"`
	PhoneNumber *string `json:"phone_number"`
}

func (a *API) getConversation(ctx context.Context, r *request, in *byText) (*fullConversation, error) {
	conv, err := a.DB.Conversation(ctx, r.UserID(), in.ID)
	if err != nil {
		return nil, err
	}
	list, err := a.DB.Messages(ctx, conv.ID)
	out := &fullConversation{Conversation: *conv, History: list, Variables: conv.Variables,
		ExtractedVariables: conv.Extracted, Notes: conv.ExtractedNotes,
		ExternalIdentifier: conv.ExternalIdentifier, EndedAt: parley.DateTime(conv.EndedAt), Assignee: conv.AssigneeName,
		VendorUses: conv.VendorUses, VendorSwitches: conv.VendorSwitches}
	if out.ExtractedVariables == nil {
		out.ExtractedVariables = map[string]any{}
	}
	if conv.ExternalIdentifier != nil {
		out.Customer = &customer{*conv.ExternalIdentifier, conv.CustomerPhone}
	}
	return out, err
}

func (a *API) deleteConversation(ctx context.Context, r *request, in *byText) (*notice, error) {
	return &notice{"Conversation deleted successfully"}, a.Chat.Delete(ctx, r.UserID(), in.ID)
}

func (a *API) humanReply(ctx context.Context, r *request, in *newMessage) (*messageData[*parley.Message], error) {
	m, err := a.Chat.Reply(ctx, r.UserID(), r.Who.Writer(), in.ID, in.Body.Message)
	return &messageData[*parley.Message]{"Reply sent successfully", m}, err
}

type aiState struct {
	Status    bool `json:"status"`
	AIEnabled bool `json:"ai_enabled"`
}

type replyRequest struct {
	Body struct {
		AssistantID        int64             `json:"assistant_id" required:"true" format:"assistant" doc:"Integer id or UUID."`
		CustomerIdentifier string            `json:"customer_identifier" required:"true" maxLength:"255" doc:"Your identifier of the customer."`
		Message            string            `json:"message" required:"true" maxLength:"2000"`
		Variables          map[string]string `json:"variables" maxProperties:"200" format:"variables"`
	}
}

type generatedReply struct {
	Success            bool                  `json:"success"`
	ConversationID     string                `json:"conversation_id"`
	CustomerIdentifier string                `json:"customer_identifier"`
	Reply              *string               `json:"reply"`
	FunctionCalls      []parley.FunctionCall `json:"function_calls"`
	AIDisabled         bool                  `json:"ai_disabled"`
}

func (a *API) generateReply(ctx context.Context, r *request, in *replyRequest) (*generatedReply, error) {
	if _, err := a.limitReply.Take(strconv.FormatInt(r.Who.Key.ID, 10), time.Now()); err != nil {
		return nil, err
	}
	assistant, err := a.DB.Assistant(ctx, r.UserID(), in.Body.AssistantID)
	if err != nil {
		return nil, err
	}
	conv, err := a.Chat.WithCustomer(ctx, assistant, parley.APIConversation, in.Body.CustomerIdentifier,
		in.Body.Variables)
	if err != nil {
		return nil, err
	}
	w, err := a.Chat.Send(ctx, conv, in.Body.Message)
	var refused *parley.Error
	if errors.As(err, &refused) { // nothing was said, though the conversation is there
		err = &parley.Undone{Err: err}
	}
	if err != nil {
		return nil, err
	}
	defer w.Leave()
	got, err := w.Wait(ctx)
	out := answerOf(got)
	return &generatedReply{true, conv.ID, in.Body.CustomerIdentifier, out.Message, out.FunctionCalls, got.AIOff}, err
}

func (a *API) eraseCustomer(ctx context.Context, r *request, in *struct {
	Phone string `path:"phone"`
}) (*erased, error) {
	gone, err := a.Calls.EraseCustomer(ctx, r.UserID(), in.Phone, r.country())
	return &erased{"Customer data erased successfully", gone}, err
}

type erased struct {
	Message string `json:"message"`
	call.Erased
}
