package voicetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/lang"
)

// Mind is a model that hears what a Listener understands, thinks what a Brain thinks, and speaks with a Voice (sentence
// by sentence, with a pause between them) or writes.
type Mind struct {
	Brain      *Brain
	Voice      *Voice
	Recognizer *Listener

	Connecting time.Duration // before a session is there
	Refuses    int           // so many times, Connect fails
	Life       time.Duration // of a session; it says so two seconds before its end
	Drops      int           // so many sessions end in the middle of a sentence, the second one where it writes
	Loses      int           // so many sessions end between the calls of a response and its end
	Late       bool          // a sentence's text is told after its sound
	Pause      time.Duration // between sentences

	mu       sync.Mutex
	Sessions []*MindSession
}

// Connect implements ai.RealtimeModel.
func (m *Mind) Connect(ctx context.Context, setup ai.RealtimeSetup) (ai.RealtimeSession, error) {
	if err := sleep(ctx, m.Connecting); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Refuses > 0 {
		m.Refuses--
		return nil, &ai.Error{Kind: ai.Unreachable, Err: errors.New("no mind")}
	}
	heard, err := m.Recognizer.Listen(ctx, ai.Hearing{Language: setup.Language, Others: setup.Others, Rate: setup.Rate})
	if err != nil {
		return nil, err
	}
	s := &MindSession{m: m, setup: setup, recognition: heard.(*recognition), out: make(chan ai.RealtimeEvent, 4)}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	m.Sessions = append(m.Sessions, s)
	s.wg.Go(s.follow)
	if m.Life > 0 {
		s.wg.Go(s.age)
	}
	return s, nil
}

// Last is the newest session.
func (m *Mind) Last() *MindSession {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.Sessions[len(m.Sessions)-1]
}

// happens reports whether something happens that is to happen so many times, and counts it.
func (m *Mind) happens(times *int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if *times == 0 {
		return false
	}
	*times--
	return true
}

// Cuts is how often the sessions were told how much of something was heard.
func (m *Mind) Cuts() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.Sessions {
		s.mu.Lock()
		n += s.cuts
		s.mu.Unlock()
	}
	return n
}

// MindSession is a session of a Mind.
type MindSession struct {
	m           *Mind
	setup       ai.RealtimeSetup
	recognition *recognition
	ctx         context.Context
	cancel      context.CancelCauseFunc
	out         chan ai.RealtimeEvent
	wg          sync.WaitGroup
	once        sync.Once

	mu    sync.Mutex
	items []*thing
	ended int // utterances
	cuts  int
	after chan struct{} // closed when the response under way is over
	over  bool
}

// begin starts a goroutine of a session that is not over.
func (s *MindSession) begin(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.wg.Go(f)
	}
}

// thing is an item of a conversation.
type thing struct {
	n         int // of a response or a text; -1: an utterance
	utterance int
	message   ai.Message
	cancel    context.CancelFunc
	spans     []span // of what is spoken
	cut, over bool
}

// span is a sentence in the audio of a response.
type span struct {
	text     string
	from, to int // frames
}

var errDropped = &ai.Error{Kind: ai.Interrupted, Err: errors.New("the socket broke")}

func (s *MindSession) follow() {
	for t := range s.recognition.Transcripts() {
		s.tell(ai.RealtimeEvent{Kind: ai.RealtimeHeard, N: t.Utterance, Text: t.Text, Language: t.Language, Final: t.Final, Err: t.Err})
	}
	if s.ctx.Err() == nil {
		s.cancel(errDropped)
	}
}

func (s *MindSession) age() {
	const notice = 2 * time.Second
	if sleep(s.ctx, s.m.Life-notice) == nil {
		s.tell(ai.RealtimeEvent{Kind: ai.RealtimeExpiring, Remaining: notice})
		if sleep(s.ctx, notice) == nil {
			s.cancel(errDropped)
		}
	}
}

func (s *MindSession) tell(e ai.RealtimeEvent) {
	if s.ctx.Err() != nil { // a socket that is gone says nothing
		return
	}
	select {
	case s.out <- e:
	case <-s.ctx.Done():
	}
}

// Write implements ai.RealtimeSession.
func (s *MindSession) Write(pcm []int16) {
	for len(pcm) > 0 { // a replay may come in one piece
		n := min(len(pcm), Rate.FrameSize())
		s.recognition.Write(pcm[:n])
		pcm = pcm[n:]
	}
}

// End implements ai.RealtimeSession.
func (s *MindSession) End() {
	s.mu.Lock()
	s.items = append(s.items, &thing{n: -1, utterance: s.ended,
		message: ai.Message{Role: ai.User, Text: strings.Join(s.recognition.text, " ")}})
	s.ended++
	s.mu.Unlock()
	s.recognition.End()
}

// Forget implements ai.RealtimeSession.
func (s *MindSession) Forget(utterance int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.items = slices.DeleteFunc(s.items, func(t *thing) bool { return t.n < 0 && t.utterance == utterance })
}

// Add implements ai.RealtimeSession.
func (s *MindSession) Add(n int, messages ...ai.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range messages {
		s.items = append(s.items, &thing{n: n, message: m, over: true})
	}
}

// Result implements ai.RealtimeSession.
func (s *MindSession) Result(callID, result string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.items, func(t *thing) bool {
		return slices.ContainsFunc(t.message.Calls, func(c ai.ToolCall) bool { return c.ID == callID })
	}) + 1
	for at < len(s.items) && s.items[at].message.Role == ai.ToolRole {
		at++
	}
	s.items = slices.Insert(s.items, at, &thing{message: ai.Message{Role: ai.ToolRole, CallID: callID, Text: result}})
}

// Respond implements ai.RealtimeSession.
func (s *MindSession) Respond(n int, instruction string, words bool) {
	ctx, cancel := context.WithCancel(s.ctx)
	t := &thing{n: n, message: ai.Message{Role: ai.Assistant}, cancel: cancel}
	s.mu.Lock()
	before := s.after
	done := make(chan struct{})
	s.after = done
	s.items = append(s.items, t)
	s.mu.Unlock()
	s.begin(func() {
		defer close(done)
		defer cancel()
		if before != nil {
			<-before
		}
		s.respond(ctx, t, instruction, words)
	})
}

// request is what the brain is asked for a response.
func (s *MindSession) request(t *thing, instruction string, words bool) ai.Request {
	req := ai.Request{System: s.setup.System, Tools: s.setup.Tools, NoCalls: words}
	s.mu.Lock()
	for _, i := range s.items {
		if i == t {
			continue
		}
		m := i.message
		if n := len(req.Messages); n > 0 && m.Role == ai.User && req.Messages[n-1].Role == ai.User {
			req.Messages[n-1].Text = strings.TrimSpace(req.Messages[n-1].Text + " " + m.Text)
		} else if m.Text != "" || len(m.Calls) > 0 {
			req.Messages = append(req.Messages, m)
		}
	}
	s.mu.Unlock()
	if instruction != "" {
		req.Messages = append(req.Messages, ai.Message{Role: ai.User, Text: instruction})
	}
	return req
}

func (s *MindSession) respond(ctx context.Context, t *thing, instruction string, words bool) {
	req := s.request(t, instruction, words)
	split, second := lang.Splitter{Language: s.setup.Language}, false // second: it has begun with the second sentence
	drop := s.m.happens(&s.m.Drops)
	say := func(sentence string) error {
		if sentence == "" {
			return nil
		}
		text := ai.RealtimeEvent{Kind: ai.RealtimeText, N: t.n, Text: sentence}
		if s.m.Late {
			defer s.tell(text)
		} else {
			s.tell(text)
		}
		return s.speak(ctx, t, sentence, drop)
	}
	var reply ai.Reply
	err := context.Cause(ctx)
	if err == nil {
		reply, err = s.m.Brain.Generate(ctx, req, func(d ai.Delta) error {
			if d.Call != nil {
				s.mu.Lock()
				t.message.Calls = append(t.message.Calls, *d.Call)
				s.mu.Unlock()
				return nil
			}
			if s.setup.Writes {
				s.mu.Lock()
				t.message.Text += d.Text
				s.mu.Unlock()
				s.tell(ai.RealtimeEvent{Kind: ai.RealtimeText, N: t.n, Text: d.Text})
				if drop && second {
					s.cancel(errDropped)
				}
				second = len(split.Push(d.Text)) > 0 || second
				return nil
			}
			for _, sentence := range split.Push(d.Text) {
				if err := say(sentence); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err == nil && !s.setup.Writes {
		err = say(split.Flush())
	}
	if ctx.Err() != nil {
		err = nil
		if s.ctx.Err() == nil {
			s.mu.Lock()
			t.message.Calls = nil
			s.mu.Unlock()
		}
	} else if err == nil {
		for _, c := range reply.Calls {
			s.tell(ai.RealtimeEvent{Kind: ai.RealtimeCall, N: t.n, Call: &c})
		}
		if len(reply.Calls) > 0 && s.m.happens(&s.m.Loses) {
			s.cancel(errDropped)
		}
	}
	s.mu.Lock()
	t.over = true
	if err != nil || t.cut && len(t.message.Calls) == 0 && t.message.Text == "" {
		s.items = slices.DeleteFunc(s.items, func(i *thing) bool { return i == t })
	}
	s.mu.Unlock()
	s.tell(ai.RealtimeEvent{Kind: ai.RealtimeDone, N: t.n, Usage: reply.Usage, Err: err})
}

// speak sends the audio of a sentence.
func (s *MindSession) speak(ctx context.Context, t *thing, sentence string, drop bool) error {
	v := s.m.Voice
	said := lang.Speakable(sentence, s.setup.Language, lang.AsWritten, nil)
	v.mu.Lock()
	value := v.value(said)
	delay, pace := v.Delay, v.Pace
	v.mu.Unlock()
	if err := sleep(ctx, delay); err != nil {
		return err
	}
	size, n := s.setup.Rate.FrameSize(), framesOf(said)
	s.mu.Lock()
	at := 0
	if l := len(t.spans); l > 0 {
		at = t.spans[l-1].to
		if pause := int(s.m.Pause / audio.FrameTime); pause > 0 {
			s.mu.Unlock()
			s.tell(ai.RealtimeEvent{Kind: ai.RealtimeSound, N: t.n, PCM: make([]int16, pause*size)})
			s.mu.Lock()
			at += pause
		}
	}
	if !t.cut {
		t.spans = append(t.spans, span{said, at, at + n})
		t.message.Text = strings.TrimSpace(t.message.Text + " " + strings.TrimSpace(sentence))
	}
	s.mu.Unlock()
	for i := 0; i < n; i += 5 {
		if i > 0 {
			if err := sleep(ctx, pace); err != nil {
				return err
			}
		}
		if drop && i >= n/2 {
			s.cancel(errDropped)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		pcm := make([]int16, min(5, n-i)*size)
		for j := range pcm {
			pcm[j] = value
			if j%size == mark {
				pcm[j] = int16(i + j/size)
			}
		}
		s.tell(ai.RealtimeEvent{Kind: ai.RealtimeSound, N: t.n, PCM: pcm})
	}
	return nil
}

// Say implements ai.RealtimeSession.
func (s *MindSession) Say(n int, text string) {
	s.begin(func() {
		t := &thing{n: n}
		_ = s.speak(s.ctx, t, text, false) // it fails with the session
		s.tell(ai.RealtimeEvent{Kind: ai.RealtimeDone, N: n})
	})
}

// Cut implements ai.RealtimeSession.
func (s *MindSession) Cut(n int, heard time.Duration, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cuts++
	for _, t := range s.items {
		if t.n != n || n == 0 {
			continue
		}
		t.cut = true
		if t.cancel != nil {
			t.cancel()
		}
		if t.message.Text = text; len(t.spans) > 0 {
			t.message.Text = held(t.spans, int(heard/audio.FrameTime))
		}
		if !t.over {
			t.message.Calls = nil
		}
	}
	s.items = slices.DeleteFunc(s.items, func(t *thing) bool {
		return t.n == n && n != 0 && t.over && t.message.Text == "" && len(t.message.Calls) == 0
	})
}

// held is what a model knows of its speech up to a frame.
func held(spans []span, frames int) string {
	var words []string
	for _, s := range spans {
		all := strings.Fields(s.text)
		n := len(all)
		if frames < s.to {
			n = max(0, frames-s.from) * len(all) / (s.to - s.from)
		}
		words = append(words, all[:n]...)
	}
	return strings.Join(words, " ")
}

// Holds lists what the assistant has said, as the model knows it.
func (s *MindSession) Holds() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, t := range s.items {
		if t.message.Role == ai.Assistant && t.message.Text != "" {
			out = append(out, strings.Join(strings.Fields(t.message.Text), " "))
		}
	}
	return out
}

// Events implements ai.RealtimeSession.
func (s *MindSession) Events() <-chan ai.RealtimeEvent {
	s.once.Do(func() {
		go func() {
			<-s.ctx.Done()
			s.mu.Lock()
			s.over = true
			s.mu.Unlock()
			s.recognition.Close()
			s.wg.Wait()
			if errors.Is(context.Cause(s.ctx), errDropped) {
				s.out <- ai.RealtimeEvent{Kind: ai.RealtimeLost, Err: errDropped}
			}
			close(s.out)
		}()
	})
	return s.out
}

// Close implements ai.RealtimeSession.
func (s *MindSession) Close() {
	s.cancel(nil)
	for range s.Events() { // to its end
	}
}
