package voice

import "parley/internal/turn"

// judging is what an external detector of the end of a turn is asked, and what it was not asked yet. It belongs to the
// owner.
type judging struct {
	busy bool   // it is being asked
	next string // the newest text that came meanwhile, "" for none
}

// judge asks the external detector about what the customer has said so far, if that counts for when the turn is over, or for
// when a reply is begun. It is asked one
// thing at a time: of the texts that come meanwhile the newest one is next. Until it answers, and where it doesn't, the
// machine's own judgement stands.
func (r *run) judge(text string) {
	if r.Judge == nil || r.over || r.cast == nil || r.cast.Assistant.EndpointType != "ai" && !r.Speculate {
		return
	}
	if r.judging.busy {
		r.judging.next = text
		return
	}
	r.judging = judging{busy: true}
	language, question := r.cast.Language, r.transcript.question()
	r.safely(func() {
		over, ok := r.Judge(r.ctx, language, text, question)
		r.inbox.post(func() {
			next := r.judging.next
			r.judging = judging{}
			if ok {
				r.step(turn.Event{Kind: turn.Judged, Text: text, Over: over})
			}
			if next != "" && next != text {
				r.judge(next)
			}
		})
	})
}
