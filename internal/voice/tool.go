package voice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/internal/agent"
	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/parley"
	"parley/internal/turn"
)

// keys are the keys pressed for collect_keypad.
type keys struct {
	digits  string
	pressed bool // a key ended it, not the time
}

// outlasting wraps tools so that they go on when the customer interrupts the reply: they act on the outside world, and
// the model learns their result in the next reply. Those that change nothing are broken off, and asynchronous ones run in the background.
func (r *run) outlasting(tools []agent.Tool) []agent.Tool {
	out := slices.Clone(tools)
	for i := range out {
		if out[i].Async != nil {
			out[i].Run = r.async(out[i])
			continue
		}
		if out[i].Idle {
			continue
		}
		run := out[i].Run
		out[i].Run = func(ctx context.Context, arguments json.RawMessage) (string,
			error) {
			return run(r.ctx, arguments)
		}
	}
	return out
}

// builtIn are the assistant's built-in tools.
func (r *run) builtIn(a *answer, p *Persona) []agent.Tool {
	var out []agent.Tool
	several := map[string]int{}
	for i := range p.Assistant.Tools {
		t := &p.Assistant.Tools[i]
		var tool agent.Tool
		switch t.Type {
		case "end_call":
			tool = r.endCall(a)
		case "call_transfer", "warm_call_transfer":
			warm := t.Warm()
			switch {
			case warm != nil && r.Warm != nil:
				tool = r.warmTransfer(a, warm)
			case warm == nil && r.Transfer != nil:
				tool = r.callTransfer(a, t)
			default:
				continue
			}
		case "dtmf_input":
			tool = r.dtmfInput(a)
		case "collect_keypad":
			tool = r.collectKeypad(a, t)
		case "assistant_transfer":
			if r.Hand == nil || t.AssistantID == nil {
				continue
			}
			tool = r.assistantTransfer(a, t)
		default:
			continue
		}
		tool.Name = t.Type
		if several[t.Type]++; several[t.Type] > 1 {
			tool.Name += "_" + strconv.Itoa(several[t.Type])
		}
		if t.Description != "" {
			tool.Description += " Use it when: " + t.Description
		}
		out = append(out, tool)
	}
	return out
}

// noArguments and reasoned are the schemas of most built-in tools.
var (
	noArguments = json.RawMessage(`{"type":"object","properties":{}}`)
	reasoned    = json.RawMessage(`{"type":"object","properties":{"reason":{"type":"string","description":"Why, in a few words"}}}`)
	dialled     = json.RawMessage(
		`{"type":"object","properties":{"digits":{"type":"string","description":"The keys to press: 0-9, *, #"}},"required":["digits"]}`)
)

func (r *run) endCall(a *answer) agent.Tool {
	return agent.Tool{
		Tool: ai.Tool{Description: "Ends the call. Say goodbye first, in the same reply: the call ends when it has been heard.",
			Schema: reasoned},
		Ends: true,
		Run: func(ctx context.Context, _ json.RawMessage) (string, error) {
			r.happens(turn.Event{Kind: turn.Leave, Reply: a.id, Reason: parley.AssistantHangup})
			return "The call ends.", context.Cause(ctx)
		},
	}
}

func (r *run) callTransfer(a *answer, t *parley.AssistantTool) agent.Tool {
	return agent.Tool{
		Tool: ai.Tool{Description: "Transfers the call to " + t.PhoneNumber +
			". Tell the customer first, in the same reply: the call is transferred when it has been heard.",
			Schema: reasoned},
		Ends: true,
		Run: func(ctx context.Context, _ json.RawMessage) (string, error) {
			if err := r.untilHeard(ctx, a); err != nil {
				return "", err
			}
			done := r.beFirm(a)
			err := r.Transfer(r.ctx, t.PhoneNumber)
			if err == nil {
				r.happens(turn.Event{Kind: turn.End, Reason: parley.Transferred})
			}
			done()
			if errors.Is(err, parley.ErrNoRefer) && r.Reach != nil {
				err = r.joinWith(a, t.PhoneNumber)
			}
			if cause := context.Cause(r.ctx); err != nil && cause != nil {
				return "", cause
			}
			if err != nil {
				r.note(fmt.Errorf("transfer the call: %w", err))
				return "", errors.New("the transfer failed; the customer is still on the line")
			}
			return "The call was transferred.", nil
		},
	}
}

func (r *run) dtmfInput(a *answer) agent.Tool {
	return agent.Tool{
		Tool: ai.Tool{Description: "Presses keys on the telephone, for example in the menu of another system.",
			Schema: dialled},
		Run: func(ctx context.Context, arguments json.RawMessage) (string, error) {
			var in struct{ Digits string }
			if err := json.Unmarshal(arguments, &in); err != nil {
				return "", err
			}
			digits := strings.ToUpper(strings.Map(func(c rune) rune {
				if c == ' ' || c == '-' || c == ',' {
					return -1
				}
				return c
			}, in.Digits))
			if digits == "" || len(digits) > turn.MaxKeys || !audio.ValidKeys(digits) {
				return "", errors.New("digits may hold 0-9, *, # and A-D, at most " + strconv.Itoa(turn.MaxKeys))
			}
			if err := r.untilHeard(ctx, a); err != nil {
				return "", err
			}
			if err := r.leg.Dial(digits); err != nil {
				return "", fmt.Errorf("the keys could not be sent: %w", err)
			}
			return "The keys " + digits + " were pressed.", nil
		},
	}
}

func (r *run) collectKeypad(a *answer, t *parley.AssistantTool) agent.Tool {
	wait, stop := 5*time.Second, byte('#')
	if t.Timeout != nil {
		wait = time.Duration(*t.Timeout) * time.Second
	}
	if t.StopKey != "" {
		stop = t.StopKey[0]
	}
	about := "Waits for keys that the customer presses on the telephone. Ask for them first, in the same reply. The customer ends with " +
		string(stop) + "."
	return agent.Tool{
		Tool: ai.Tool{Description: about, Schema: noArguments},
		Run: func(ctx context.Context, _ json.RawMessage) (string, error) {
			result := make(chan keys, 1)
			busy := true
			r.inbox.ask(func() {
				if busy = r.collected != nil || a.over; !busy {
					r.collected = result
					r.step(turn.Event{Kind: turn.Collect, Reply: a.id, Wait: wait, Key: stop})
				}
			})
			if busy {
				return "", errors.New("keys are being collected already")
			}
			// The machine reports the keys even when the reply is cut off: what was pressed is not lost.
			select {
			case k := <-result:
				by := "timeout"
				if k.pressed {
					by = "key"
				}
				out, _ := json.Marshal(struct { // strings can't fail
					Digits  string `json:"digits"`
					EndedBy string `json:"ended_by"`
				}{k.digits, by})
				return string(out), nil
			case <-r.ctx.Done():
				return "", context.Cause(r.ctx)
			}
		},
	}
}

func (r *run) assistantTransfer(a *answer, t *parley.AssistantTool) agent.Tool {
	return agent.Tool{
		Tool: ai.Tool{Description: "Hands the conversation over to another assistant.", Schema: reasoned},
		Ends: true,
		Run: func(ctx context.Context, _ json.RawMessage) (string, error) {
			if text := strings.TrimSpace(t.MessageBeforeTransfer); text != "" {
				r.happens(turn.Event{Kind: turn.Sentence, Reply: a.id, Text: " " + text})
			}
			if err := r.untilHeard(ctx, a); err != nil {
				return "", err
			}
			done := r.beFirm(a)
			defer done()
			if err := r.handOver(a, *t.AssistantID); err != nil {
				r.note(fmt.Errorf("hand over to assistant %d: %w", *t.AssistantID, err))
				return "", errors.New("the other assistant is not available; go on yourself")
			}
			return "The other assistant goes on with the conversation.", nil
		},
	}
}

// untilHeard waits until everything that the reply has said so far was played.
func (r *run) untilHeard(ctx context.Context, a *answer) error {
	var heard chan struct{}
	r.inbox.ask(func() {
		if a.over {
			return
		}
		if r.drained == nil {
			r.drained = make(chan struct{})
		}
		heard = r.drained
		r.step(turn.Event{Kind: turn.Await, Reply: a.id})
	})
	if heard == nil {
		return errInterrupted
	}
	select {
	case <-heard:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return errInterrupted
	}
	return nil
}

// errInterrupted is meant for the model.
var errInterrupted = errors.New("the customer spoke before it was done, and it was not done")

// beFirm keeps a reply from being cut off while the call is handed to someone else, until done is called.
func (r *run) beFirm(a *answer) (done func()) {
	transferring := make(chan struct{})
	r.inbox.ask(func() {
		r.transferring, r.passing = transferring, true
		r.step(turn.Event{Kind: turn.Firm, Reply: a.id, Final: true})
	})
	return func() {
		r.inbox.post(func() {
			r.transferring, r.passing = nil, false
			close(transferring)
			r.step(turn.Event{Kind: turn.Firm, Reply: a.id})
		})
	}
}
