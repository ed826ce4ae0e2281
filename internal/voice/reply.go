package voice

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/internal/agent"
	"parley/internal/ai"
	"parley/internal/lang"
	"parley/internal/parley"
	"parley/internal/turn"
)

// What a driver reports about a reply, and what the session does with it. All of this belongs to the owner.

// answer is the session's side of the machine's current reply.
func (r *run) answer(id int, p turn.Purpose) *answer {
	if r.reply == nil || r.reply.id != id {
		r.reply = &answer{id: id, purpose: p, anchor: -1, thought: true}
		r.begins(r.reply)
	}
	return r.reply
}

// think has the driver answer the customer, or say something on its own initiative.
func (r *run) think(act turn.Action) {
	a := &answer{id: act.Reply, purpose: act.Purpose, anchor: -1}
	if act.Purpose == turn.Reengagement {
		a.quiet = act.Last - act.From
	}
	if act.Purpose == turn.Answer {
		a.anchor = act.Last
		if r.missed {
			a.marks.Ahead, r.missed = parley.AheadMiss, false
		}
		if !act.Early {
			a.marks.EndpointMS = since(r.clock.now(), act.Last)
		}
		a.marks.TranscriptMS = since(max(r.final, act.Last), act.Last)
		r.transcript.customer(act)
		for _, s := range act.Said {
			if s.N < 0 {
				a.keys = append(a.keys, s.Text)
			}
		}
	}
	r.begins(a)
	r.transcript.settle()
	r.reply = a
	if act.Early {
		r.eager.Begun++
	}
	r.cast.think(a, act.Early)
}

// commit notes that the turn which an early reply answers has ended.
func (r *run) commit(id int) {
	if a := r.reply; a != nil && a.id == id {
		a.marks.EndpointMS = since(r.clock.now(), a.anchor)
		a.marks.Ahead = parley.AheadHit
		r.eager.Used++
		r.cast.commit(a)
	}
}

// wrote is called when a reply forms; it is false when nobody wants the reply any more.
func (r *run) wrote(a *answer) bool {
	if a.over {
		return false
	}
	a.wrote()
	r.broken.thought = nil
	if a.marks.FirstTokenMS == 0 && a.anchor >= 0 {
		a.marks.FirstTokenMS = since(r.clock.now(), a.anchor)
	}
	r.step(turn.Event{Kind: turn.Token, Reply: a.id})
	return true
}

// sentence is called when there is something to speak.
func (r *run) sentence(a *answer, text string) {
	text = parley.CleanText(text)
	if a.over || strings.TrimSpace(text) == "" {
		return
	}
	if a.marks.FirstSentenceMS == 0 && a.anchor >= 0 {
		a.marks.FirstSentenceMS = since(r.clock.now(), a.anchor)
	}
	r.step(turn.Event{Kind: turn.Sentence, Reply: a.id, Text: text})
}

// toolBegan and toolEnded are called around a tool; counts is false if the tool was given up before it did anything.
func (r *run) toolBegan(a *answer, c agent.ToolCall) {
	a.called(c)
	r.step(turn.Event{Kind: turn.ToolBegan, Reply: a.id})
}

func (r *run) toolEnded(a *answer, c agent.ToolCall, counts bool) {
	if !counts {
		a.stopped(c)
		return
	}
	a.finished(c)
	r.told(Event{Kind: ToolUsed, Call: c})
	r.step(turn.Event{Kind: turn.ToolEnded, Reply: a.id})
	r.records(c)
}

// thought is called when a reply is complete, failed, or was stopped.
func (r *run) thought(a *answer, used ai.Usage, err error, stopped bool) {
	r.usage.Add(used)
	a.thought = a.thought || err == nil
	switch {
	case err == nil:
		r.broken.thought = nil
	case !stopped:
		r.noted(fmt.Errorf("reply %d: %w", a.id, err))
		a.failed, r.broken.thought = err, err
	}
	r.step(turn.Event{Kind: turn.Thought, Reply: a.id, Failed: err != nil})
}

// enqueue makes a part the next thing that the reply says.
func (r *run) enqueue(a *answer, p *part) {
	p.reply, p.step = a.id, a.step
	a.parts = append(a.parts, p)
	if !p.whole {
		if r.cast.speaker != nil {
			r.cast.speak(a, p)
		}
		return
	}
	r.out.add(p) // a recording
	r.audible(a, p, r.clock.now())
}

// recordedMessage stands in the transcript for a recorded message whose words nobody has written down.
const recordedMessage = "[a recorded message]"

// say makes a fixed sentence a part of a reply.
func (r *run) say(a *answer, w turn.Purpose) {
	p := &part{keep: true}
	switch w {
	case turn.Greeting:
		p.text, p.initial = r.cast.Initial, true
	case turn.Voicemail:
		p.text = r.cast.VoicemailMessage
		if pcm := r.cast.VoicemailSound[r.rate]; len(pcm) > 0 {
			p.text = cmp.Or(p.text, recordedMessage)
			p.pcm, p.size, p.whole = pcm, len(pcm), true
		}
	case turn.Filler:
		p.text, p.aside = r.asides.filler(r.cast.Assistant, r.cast.Language, r.transcript.asked()), true
	case turn.Moment, turn.StillOn:
		if p.text, p.aside = r.asides.ofTool(w, a.running), true; p.text == "" {
			p.text = r.asides.bridge(w, r.cast.Assistant, r.cast.Language, r.transcript.asked())
		}
	case turn.Failure:
		p.text = r.failureText()
	default:
		p.text = fixed(w, r.cast.Language)
	}
	r.enqueue(a, p)
}

// audible notes when a reply's first audio is there.
func (r *run) audible(a *answer, p *part, now time.Duration) {
	if a.anchor >= 0 && !p.aside && a.marks.FirstAudioMS == 0 {
		a.marks.FirstAudioMS = since(now, a.anchor)
	}
}

// understood takes a transcript from a recognizer whose first utterance has the session's number base.
func (r *run) understood(base int, t ai.Transcript) {
	t.Text = parley.CleanText(t.Text)
	if t.Err != nil {
		r.broken.heard = ai.TheRecognizer.Of(t.Err)
		r.noted(fmt.Errorf("understand utterance %d: %w", t.Utterance, r.broken.heard))
	}
	r.transcript.spoken(base+t.Utterance, r.cast, t)
	said, finds := turns[t.Turn]
	if t.Final || finds && t.Text != "" {
		r.final = r.clock.now()
	}
	e := turn.Event{Kind: turn.Text, N: base + t.Utterance, Text: t.Text, Final: t.Final, Failed: t.Err != nil,
		NoSpeech: t.NoSpeech}
	if t.Final || !finds {
		r.step(e)
		e.Text = ""
	}
	if finds {
		e.Kind = said
		r.step(e)
	}
	if r.transcript.understood(base+t.Utterance, t.Text, t.Final) {
		if a := r.reply; t.Final && a != nil && a.anchor >= 0 {
			a.marks.TranscriptMS = since(r.clock.now(), a.anchor)
		}
		r.transcript.settle()
	}
}

// turns maps a recognizer's turn events to the machine's.
var turns = map[ai.Turn]turn.EventKind{ai.TurnStarted: turn.Started, ai.TurnEager: turn.Eager,
	ai.TurnResumed: turn.Resumed, ai.TurnEnded: turn.Ended}

// history is what the model is given before it answers.
func (r *run) history(a *answer) []ai.Message {
	history := r.transcript.history()
	if len(a.parts) > 0 && a.parts[0].initial { // the answer begins with the greeting
		history = slices.Insert(history, len(history)-1, ai.Message{Role: ai.Assistant, Text: a.parts[0].text})
	}
	return history
}

// instruction is what the model is told when it should speak although nobody said anything.
func instruction(a *answer, reengagement string) string {
	switch a.purpose {
	case turn.Reengagement:
		return fmt.Sprintf("[The customer has said nothing for %d seconds. %s Say something fitting, in one or two sentences, "+
			"in the language of the conversation.]", int(a.quiet.Seconds()), reengagement)
	case turn.Screened:
		return "[A call screener has answered, and asks who is calling and why. Say your name, for whom you call, and the purpose of the call, " +
			"in one short sentence and in the language of the conversation. Say nothing else: nobody talks with you yet.]"
	case turn.Chosen:
		return "[An automatic menu has answered, and said the text above. " +
			"Press the key that leads closest to the purpose of this call, with the tool dtmf_input. Say nothing.]"
	case turn.Return:
		return "[Your supervisor has talked with the customer in your place, and hands the conversation back to you. Go on with it where it " +
			"stands, in one or two sentences.]"
	case turn.Entrance:
		return "[You have just taken over this conversation from another assistant. Go on with it: say who you are, and help with what " +
			"the customer wants.]"
	}
	return ""
}

// failureText says that the model failed.
func (r *run) failureText() string {
	if l := lang.Of(r.cast.Language); !l.English {
		return l.Phrases.Failure
	}
	if r.reply != nil {
		return agent.Sentence(r.reply.failed)
	}
	return agent.Sentence(nil)
}
