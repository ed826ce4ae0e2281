package voicetest

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
)

// transfer sets the outcome of transfers.
func (p *play) transfer(a *args) {
	works := a.word() == "works"
	after, _ := a.timeOf("after")
	p.session.Transfer = func(ctx context.Context, to string) error {
		p.note("transfer to %s", to)
		if err := sleep(ctx, after); err != nil {
			return err
		}
		if !works {
			return errors.New("the far end refused")
		}
		return nil
	}
}

// hand creates another assistant, or none.
func (p *play) hand(a *args) {
	id, _ := strconv.ParseInt(a.word(), 10, 64)
	if a.is("fails") {
		return
	}
	h := p.persona(id)
	if a.is("initial") {
		h.Initial = a.text()
	}
	if len(a.words) > 0 && a.is("tools") {
		w := a.word()
		if err := json.Unmarshal([]byte(w), &h.Assistant.Tools); err != nil {
			p.fatalf("%v", err)
		}
	}
	p.heirs[id] = h
	if id == 1 { // back to the first
		h.Assistant = p.session.Persona.Assistant
		p.heirs[id] = h
	}
}
