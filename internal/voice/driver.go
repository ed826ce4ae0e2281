package voice

import (
	"parley/internal/ai"
	"parley/internal/turn"
)

// A driver hears, thinks and speaks for one persona of a session: it is a driver, listener, thinker and speaker, and perhaps
// more. The session keeps what all ways of doing so have in common: turn-taking, playout, the transcript, the recording,
// tools, keys, silence, transfers and the end of the call. A session has one driver at a time, and gets another when another
// assistant takes over. While a person talks with the customer in the assistant's place it has none.
//
// The owner calls all methods, so none may wait. A driver does slow work in goroutines of its own (run.safely), whose
// results go back to the owner through run.inbox:
//
//   - what was heard of an utterance: run.understood
//   - a reply as it forms: run.wrote, run.sentence (text to be spoken), run.thought when all of it is there
//   - its tools: run.toolBegan and run.toolEnded; run.builtIn are the session's own, which transfer the call, press and
//     collect keys, and end the call
//   - audio: playout.put into a part that it was given to speak
//   - its end, when it can't go on: run.fail
type driver interface {
	// enter puts the driver in charge of the session: utterance n and those after it are for its recognizers. first means that
	// no driver came before it.
	enter(n int, first bool)
	// close releases everything.
	close()
}

// listener hears the customer.
type listener interface {
	// hear takes the far end's cleaned audio in frames of 20 ms as they come. talking means that the frame is part of
	// an utterance. The driver may not keep the frame.
	hear(f *frame, talking bool)
	// utterance begins one, with the audio heard just before it. endUtterance ends it: its final text is now awaited.
	utterance(before []*frame)
	endUtterance()
}

// thinker makes the replies.
type thinker interface {
	// think makes a reply to what is in the transcript (run.history), including keys that nobody collected. With early set,
	// tools wait for commit, as the customer may go on.
	think(a *answer, early bool)
	commit(a *answer)
	// giveUp stops the thinking of a reply that won't be used.
	giveUp(a *answer)
}

// speaker says them.
type speaker interface {
	// speak makes a text the reply's next part, and gives it to the playout.
	speak(a *answer, p *part)
	// stop ends whatever is under way for a reply: it is over.
	stop(a *answer)
}

// keeper is a driver whose model remembers the conversation by itself, so that it must be told what changes. Other models
// are given the transcript each time.
type keeper interface {
	// forget says that utterance n was not one after all.
	forget(n int)
	// told says that somebody besides the customer has said something, which is in the transcript.
	told(m ai.Message)
}

// nodder is a driver that can say a word of listening. A realtime model can't: its words come too late to tell a pause from an
// end.
type nodder interface {
	// nod says it at once, or not at all: it is no reply, and is not in the transcript.
	nod()
}

// cast is a persona together with what acts for it. All of it is nil where a person has the customer: then the machine asks
// for no thinking and opens no recognizer, but sound still comes, and what was being said is still to be stopped.
type cast struct {
	Persona
	driver
	listener
	thinker
	speaker
	keeper // nil: it keeps nothing
	nodder // nil: it can't
}

// engage prepares a driver for a persona. It may wait, so the owner must not call it.
func (r *run) engage(p Persona) (*cast, error) {
	if p.Realtime != nil {
		d, err := newRealtime(r, p)
		if err != nil {
			return nil, err
		}
		return &cast{Persona: p, driver: d, listener: d, thinker: d, speaker: d, keeper: d}, nil
	}
	d, err := newPipeline(r, p)
	if err != nil {
		return nil, err
	}
	return &cast{Persona: p, driver: d, listener: d, thinker: d, speaker: d, nodder: d}, nil
}

// enter lets a cast take over hearing and speaking from here on.
func (r *run) enter(c *cast) {
	former := r.cast
	r.cast = c
	if former != nil {
		former.leave()
		r.peer.settle(c.Persona)
		r.happens(turn.Event{Kind: turn.Lost, N: r.present()})
	}
	if c.driver != nil {
		c.enter(r.present(), former == nil)
	}
}

// leave closes the cast's driver.
func (c *cast) leave() {
	if c.driver != nil {
		c.close()
	}
}

// present is the number of the current utterance, or of the next one.
func (r *run) present() int {
	if r.open {
		return r.utterances - 1
	}
	return r.utterances
}
