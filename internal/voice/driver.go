package voice

import "parley/internal/turn"

// driver hears, thinks and speaks for one persona of a session; the session keeps what is common to all ways of doing
// so: who speaks when, what is played, the transcript, the recording, tools, keys, silence, transfers, the end. A
// session has one driver at a time, and another when another assistant goes on.
//
// All methods are called by the owner: none may wait. What takes its time a driver does in goroutines of its own
// (run.safely), and what comes of it goes back to the owner by way of run.inbox:
//
//   - what was heard of an utterance: run.understood
//   - a reply as it forms: run.wrote, run.sentence (text that is to be spoken), run.thought when all of it is there
//   - its tools: run.toolBegan and run.toolEnded; run.builtIn are the session's own, which transfer, press and collect keys, and end the call
//   - sound: playout.put into a part that it was given to speak
//   - its end, when it can't go on: run.fail
type driver interface {
	// enter makes it the session's: utterance n and those after it are for its ears. first says that nobody was there
	// before.
	enter(n int, first bool)
	// hear takes 20 ms of the far end, cleaned, as they come; talking says that they are part of an utterance. It may
	// not keep them.
	hear(pcm []int16, talking bool)
	// utterance begins one, with what was heard a little before. endUtterance is its end: its final text is waited for.
	utterance(before []*frame)
	endUtterance()
	// forget says that utterance n was none.
	forget(n int)

	// think makes a reply to what the book has (run.history), keys that nobody collected among it. early has tools
	// wait for commit, as the customer may go on.
	think(a *answer, early bool)
	commit(a *answer)
	// giveUp ends the thinking of a reply that nothing comes of.
	giveUp(a *answer)
	// speak makes a text the next part that the reply says, and gives it to the playout.
	speak(a *answer, p *part)
	// stop ends what is under way for a reply: it is over.
	stop(a *answer)

	// close lets go of everything.
	close()
}

// cast is a persona with the driver that acts for it.
type cast struct {
	Persona
	driver
}

// engage readies a driver for a persona. It may wait, and is not called by the owner.
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

// enter lets a cast hear and speak from here on, in place of another.
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

// present is the number of the utterance that is under way, or of the next.
func (r *run) present() int {
	if r.open {
		return r.utterances - 1
	}
	return r.utterances
}
