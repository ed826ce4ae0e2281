package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"parley/internal/form"
	"parley/internal/parley"
	"parley/internal/search"
	"parley/internal/store"
	"parley/internal/web"
)

// dates bound a list by day, in the user's time zone, both days included.
type dates struct {
	From string `query:"date_from" format:"date"`
	To   string `query:"date_to" format:"date"`
}

// bounds are the instants that the days stand for; to is exclusive.
func (d dates) bounds(zone *time.Location) (from, to parley.Time) {
	if t, err := time.ParseInLocation(time.DateOnly, d.From, zone); err == nil {
		from = parley.At(t)
	}
	if t, err := time.ParseInLocation(time.DateOnly, d.To, zone); err == nil {
		to = parley.At(t.AddDate(0, 0, 1))
	}
	return from, to
}

// values are the parameters that ask for the same days.
func (d dates) values() url.Values {
	v := url.Values{}
	set(v, "date_from", d.From)
	set(v, "date_to", d.To)
	return v
}

func set(v url.Values, name, value string) {
	if value != "" {
		v.Set(name, value)
	}
}

// inboxQuery is what the inbox is asked for: the API's filters.
type inboxQuery struct {
	dates
	Type        string `query:"type" enum:"test,widget,whatsapp,api"`
	AssistantID int64  `query:"assistant_id" minimum:"1"`
	Search      string `query:"search" maxLength:"200"`
	Show        string `query:"show" enum:"needs_person,unassigned,mine,all"` // the part of the inbox; "": all
	Page        int    `query:"page" minimum:"1" maximum:"2147483648"`
}

// values are the filters as parameters, without the page.
func (q inboxQuery) values() url.Values {
	v := q.narrowed()
	if q.Show != allShown {
		set(v, "show", q.Show)
	}
	return v
}

// allShown is the whole inbox.
const allShown = "all"

// narrowed are the filters within a part of the inbox.
func (q inboxQuery) narrowed() url.Values {
	v := q.dates.values()
	set(v, "type", q.Type)
	set(v, "search", q.Search)
	if q.AssistantID != 0 {
		v.Set("assistant_id", strconv.FormatInt(q.AssistantID, 10))
	}
	return v
}

// filter is what the store is asked for.
func (q inboxQuery) filter(r *request) store.ConversationFilter {
	from, to := q.bounds(r.zone())
	f := store.ConversationFilter{Type: parley.ConversationType(q.Type), AssistantID: q.AssistantID,
		Words: search.Query(r.UserID(), q.Search), From: from, To: to}
	f.Narrow(q.Show, r.who.Person())
	return f
}

func (q inboxQuery) filtered() bool { return len(q.values()) > 0 }

func (q inboxQuery) at(path string, page int) string { return address(path, q.values(), page) }

// in is the address of the first page of a part of the inbox, with the same filters.
func (q inboxQuery) in(part string) string {
	v := q.narrowed()
	v.Set("show", part)
	return address("/conversations", v, 0)
}

// shown is the address of a page of this part of the inbox, whatever waits by then.
func (q inboxQuery) shown(page int) string {
	v := q.narrowed()
	v.Set("show", cmp.Or(q.Show, allShown))
	return address("/conversations", v, page)
}

// inbox is a page of conversations.
type inbox struct {
	inboxQuery
	list       []parley.Conversation
	total      int
	parts      store.Attention // how many are in each part
	last       map[string]parley.Message
	found      map[string][]search.Piece // where it is said what is searched for
	assistants []option
	first      *parley.Assistant // to show how to use the API; nil when there is none
	base       string            // of the API
}

// version changes when anything in the list does.
func (in *inbox) version() string {
	var b strings.Builder
	for _, c := range in.list {
		fmt.Fprintf(&b, "%d.%d.%t.%d.%s ", c.Seq, c.MessageCount, c.AIEnabled, c.WaitsSince, c.AssigneeName)
	}
	fmt.Fprint(&b, in.total, in.parts.Waiting, in.parts.Unassigned, in.parts.Mine)
	return b.String()
}

// conversations reads what a query asks for; ok is false when it is none.
func (c *Console) conversations(r *request) (in *inbox, ok bool, err error) {
	in = &inbox{inboxQuery: inboxQuery{Page: 1}}
	if len(form.Query(r.URL.Query(), &in.inboxQuery)) > 0 {
		return nil, false, nil
	}
	if in.AssistantID != 0 {
		if _, err := c.DB.Assistant(r.Context(), r.UserID(), in.AssistantID); err != nil {
			return nil, false, err
		}
	}
	if in.parts, err = c.DB.Attention(r.Context(), r.UserID(), r.who.Person()); err != nil {
		return nil, false, err
	}
	if in.parts.Waiting > 0 && toInbox(r) { // what needs a person comes first
		in.Show = store.NeedsPerson
	}
	in.list, in.total, err = c.DB.Conversations(r.Context(), r.UserID(), in.filter(r),
		store.Page{Number: in.Page, Size: pageSize})
	return in, true, err
}

// toInbox says whether a request asks for the inbox without saying for what in it.
func toInbox(r *request) bool {
	q := r.URL.Query()
	q.Del("done")
	return len(q) == 0 && r.URL.Path == "/conversations"
}

func (c *Console) inboxPage(r *request) (*answer, error) {
	in, ok, err := c.conversations(r)
	if err != nil {
		return nil, err
	}
	if !ok {
		return see("/conversations"), nil
	}
	if len(in.list) == 0 && in.total > 0 { // beyond the end, as after the last one of a page was deleted
		return see(in.shown((in.total + pageSize - 1) / pageSize)), nil
	}
	ids := make([]string, len(in.list))
	for i := range in.list {
		ids[i] = in.list[i].ID
	}
	if in.last, err = c.DB.LastMessages(r.Context(), ids); err != nil {
		return nil, err
	}
	if in.found, err = c.found(r, ids, in.Search); err != nil {
		return nil, err
	}
	if in.assistants, in.first, err = c.assistantFilter(r); err != nil {
		return nil, err
	}
	in.base = c.base(r)
	return show("Conversations", inboxPage(in)), nil
}

// found are the places of conversations where it is said what is searched for.
func (c *Console) found(r *request, ids []string, text string) (map[string][]search.Piece, error) {
	words, found := search.Query(r.UserID(), text), map[string][]search.Piece{}
	if words == nil {
		return nil, nil
	}
	said, err := c.DB.Said(r.Context(), r.UserID(), ids)
	for id, list := range said {
		found[id] = search.InMessages(r.UserID(), words, list)
	}
	return found, err
}

// base is the API's address as a reader would write it.
func (c *Console) base(r *request) string { return c.Front.Base(r.Request) + "/api" }

// talk is a conversation as its page shows it.
type talk struct {
	*parley.Conversation
	messages []parley.Message
	notes    []parley.Note
	canned   []parley.CannedAnswer // on its page
	me       string                // the name that what is sent stands under
	writing  []string              // who else writes a reply now
}

// talk reads one of the user's conversations.
func (c *Console) talk(ctx context.Context, r *request) (*talk, error) {
	conv, err := c.DB.Conversation(ctx, r.UserID(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	list, err := c.DB.Messages(ctx, conv.ID)
	if err != nil {
		return nil, err
	}
	notes, err := c.DB.Notes(ctx, conv.ID)
	if err != nil {
		return nil, err
	}
	writing, err := c.otherWriters(r, conv.ID)
	return &talk{Conversation: conv, messages: list, notes: notes, me: r.who.Author(), writing: writing}, err
}

func (t *talk) path(more string) string { return "/conversations/" + t.ID + more }

// typing says whether the assistant is at work on a reply.
func (t *talk) typing() bool {
	for _, m := range t.messages {
		if m.Pending && t.AIEnabled {
			return true
		}
	}
	return false
}

// customer is what a conversation's other side is called.
func customer(c *parley.Conversation) string {
	switch {
	case c.SharedBy() != 0:
		return "Share link"
	case c.Type == parley.TestConversation:
		return "Test chat"
	}
	return cmp.Or(c.Customer(), "Visitor")
}

// typeLabels are the channels in words.
var typeLabels = map[parley.ConversationType]string{parley.TestConversation: "Test",
	parley.WidgetConversation:   "Widget",
	parley.WhatsAppConversation: "WhatsApp", parley.APIConversation: "API"}

func (c *Console) conversationPage(r *request) (*answer, error) {
	t, err := c.talk(r.Context(), r)
	if err != nil {
		return nil, err
	}
	t.canned, err = c.DB.CannedAnswers(r.Context(), r.UserID())
	return show(customer(t.Conversation), conversationPage(t)), err
}

func (c *Console) conversationDelete(r *request) (*answer, error) {
	if err := c.Chat.Delete(r.Context(), r.UserID(), r.PathValue("id")); err != nil {
		return nil, err
	}
	return see("/conversations", "deleted"), nil
}

// setAI has the assistant reply (on=1), or who is signed in (on=0).
func (c *Console) setAI(r *request) (*answer, error) {
	id, who := r.PathValue("id"), r.who.Person()
	var err error
	if r.PostFormValue("on") == "1" {
		err = c.Chat.HandBack(r.Context(), r.UserID(), id)
	} else {
		err = c.Chat.TakeOver(r.Context(), r.UserID(), id, &who)
	}
	return see("/conversations/" + id), err
}

// attended says that a conversation needs no person.
func (c *Console) attended(r *request) (*answer, error) {
	id := r.PathValue("id")
	return see("/conversations/" + id), c.Chat.Attended(r.Context(), r.UserID(), id)
}

// maxWords bounds a message, as in the API.
const maxWords = 2000

// words are what was written into the box of a conversation.
func words(r *request) (string, error) {
	text := strings.TrimSpace(strings.ReplaceAll(r.PostFormValue("message"), "\r\n", "\n"))
	switch {
	case text == "":
		return "", parley.Errorf(parley.Invalid, "There is nothing to send yet: write something first.")
	case utf8.RuneCountInString(text) > maxWords:
		return "", parley.Errorf(parley.Invalid, "A message has at most %d characters.", maxWords)
	}
	return text, nil
}

// personReply says something in the assistant's place.
func (c *Console) personReply(r *request) (*answer, error) {
	id := r.PathValue("id")
	if _, err := c.DB.Conversation(r.Context(), r.UserID(), id); err != nil {
		return nil, err
	}
	text, err := words(r)
	if err != nil {
		return nil, err
	}
	if _, err = c.Chat.Reply(r.Context(), r.UserID(), r.who.Writer(), id, text); err != nil {
		return nil, err
	}
	return see("/conversations/" + id), nil
}

// say says something as the customer of a test conversation, and streams the reply to browsers that can read it as it
// forms.
func (c *Console) say(r *request) (*answer, error) {
	conv, err := c.DB.Conversation(r.Context(), r.UserID(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if conv.Type != parley.TestConversation {
		return nil, parley.Errorf(parley.Forbidden, "You can write as the customer in a test chat only.")
	}
	text, err := words(r)
	if err != nil {
		return nil, err
	}
	if _, err := c.Message.Take(conv.ID, time.Now()); err != nil {
		return nil, err
	}
	before, err := c.DB.LastMessage(r.Context(), conv.ID)
	if err != nil {
		return nil, err
	}
	w, err := c.Chat.Send(r.Context(), conv, text)
	if err != nil {
		return nil, err
	}
	defer w.Leave()
	if !strings.Contains(r.Header.Get("Accept"), web.EventStream) {
		var e *parley.Error
		// what has a kind is shown beside the message
		if _, err := w.Wait(r.Context()); err != nil && !errors.As(err, &e) {
			return nil, err
		}
		return see("/conversations/" + conv.ID), nil
	}
	s := newStream(c, r)
	tell := func() { // the conversation's new parts, as the page would show them
		if t, err := c.talk(r.Context(), r); err == nil {
			for _, p := range t.parts(before) {
				s.put(p.body)
			}
		}
	}
	tell()
	if s.Flush() != nil { // what was said stands there before the model has a word
		return nil, nil
	}
	for {
		pieces, done, answer, err := w.Next(r.Context())
		for _, p := range pieces {
			if p.Call != nil {
				s.html("tool", toolCall(*p.Call))
			} else {
				s.send("delta", map[string]string{"text": p.Text})
			}
		}
		if done {
			tell()
			switch {
			case err != nil:
				s.send("error", map[string]string{"message": plain(r.Request, err).Message})
			case answer.AIOff && !conv.AIEnabled: // else somebody took over just now, which the page says
				s.send("error",
					map[string]string{"message": "The assistant is silent: a person has taken over. Hand the conversation back, or restart."})
			default:
				s.send("done", struct{}{})
			}
		}
		if s.Flush() != nil || done {
			return nil, nil
		}
	}
}

// part is a piece of a conversation's page that can be put in place by itself: its element's id, and what changes
// when it does.
type part struct {
	id, version string
	body        component
}

// parts are all pieces, with the messages after one.
func (t *talk) parts(after int64) (list []part) {
	for _, m := range t.messages {
		if m.ID > after {
			list = append(list, part{messageID(m), messageVersion(m), t.message(m)})
		}
	}
	return append(list, part{"typing", t.typingVersion(), typing(t)}, part{"mode", t.modeVersion(), mode(t)},
		part{"writing", writingText(t.writing), writing(t)},
		part{"waits", t.WaitsSince.String(), waits(t)}, part{"notes", t.notesVersion(), noteList(t)},
		part{"facts", t.factsVersion(), facts(t)})
}

// took is how long a reply of the assistant's took, from the message that it answers; "" where that is not known.
func (t *talk) took(m parley.Message) string {
	if m.Author != parley.AuthorAI || m.Turn == 0 {
		return ""
	}
	for _, asked := range t.messages {
		if asked.ID == m.Turn {
			return latencyText(parley.Time(m.CreatedAt).Sub(parley.Time(asked.CreatedAt)).Milliseconds())
		}
	}
	return ""
}

func messageID(m parley.Message) string { return "m-" + strconv.FormatInt(m.ID, 10) }

func messageVersion(m parley.Message) string {
	return fmt.Sprintf("%t.%t.%t.%x", m.Failed, m.Edited, m.Deleted, crc32.ChecksumIEEE([]byte(m.Content)))
}

func (t *talk) typingVersion() string { return strconv.FormatBool(t.typing()) }

func (t *talk) modeVersion() string {
	return fmt.Sprintf("%t.%t.%s", t.AIEnabled, t.WaitsSince != 0, t.AssigneeName)
}

func (t *talk) factsVersion() string {
	return fmt.Sprintf("%d.%d.%d.%d", t.MessageCount, t.TotalCost, t.EndedAt, len(t.VendorSwitches))
}
