package voice

import (
	"parley/internal/ai"
	"parley/internal/turn"
)

// driver hears, thinks and speaks for one persona of a session. The session keeps what all ways of doing so have in
// common: turn-taking, playout, the transcript, the recording, tools, keys, silence, transfers and the end of the call.
// A session has one driver at a time, and gets another when another assistant takes over.
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
	// enter puts the driver in charge of the session: utterance n and those after it are for its ears. first means that
	// no driver came before it.
	enter(n int, first bool)
	// hear takes the far end's cleaned audio in frames of 20 ms as they come. talking means that the frame is part of
	// an utterance. The driver may not keep the frame.
	hear(f *frame, talking bool)
	// utterance begins one, with the audio heard just before it. endUtterance ends it: its final text is now awaited.
	utterance(before []*frame)
	endUtterance()
	// forget says that utterance n was not one after all.
	forget(n int)

	// think makes a reply to what is in the book (run.history), including keys that nobody collected. With early set,
	// tools wait for commit, as the customer may go on.
	think(a *answer, early bool)
	commit(a *answer)
	// giveUp stops the thinking of a reply that won't be used.
	giveUp(a *answer)
	// speak makes a text the reply's next part, and gives it to the playout.
	speak(a *answer, p *part)
	// nod says a word of listening at once, or not at all: it is no reply, and stands neither in the transcript nor in the book.
	nod()
	// told says that somebody besides the customer has said something, which is in the book.
	told(m ai.Message)
	// stop ends whatever is under way for a reply: it is over.
	stop(a *answer)

	// close releases everything.
	close()
}

// cast is a persona together with the driver that acts for it.
type cast struct {
	Persona
	driver
}

// engage prepares a driver for a persona. It may wait, so the owner must not call it.
func (r *run) engage(p Persona) (*cast, error) {
	var d driver
	var err error
	if p.Realtime != nil {
		d, err = newRealtime(r, p)
	} else {
		d, err = newPipeline(r, p)
	}
	if err != nil {
		return nil, err
	}
	return &cast{p, d}, nil
}

// enter lets a cast take over hearing and speaking from here on.
func (r *run) enter(c *cast) {
	former := r.cast
	r.cast = c
	if former != nil {
		former.close()
		r.peer.settle(c.Persona)
		r.happens(turn.Event{Kind: turn.Lost, N: r.present()})
	}
	c.driver.enter(r.present(), former == nil)
}

// present is the number of the current utterance, or of the next one.
func (r *run) present() int {
	if r.open {
		return r.utterances - 1
	}
	return r.utterances
}
