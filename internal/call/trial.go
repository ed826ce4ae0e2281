package call

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/crash"
	"parley/internal/parley"
	"parley/internal/preset"
	"parley/internal/store"
)

// A test call tries one of a user's trunks: it rings a number, says a sentence, and reports everything that can be told
// of it. It has no assistant and no row, but its line costs what every call's does.

const (
	trialRings   = 30 * time.Second // before nobody has answered
	trialTalk    = 20 * time.Second // after which the test is over, whatever happens
	trialListens = 2 * time.Second  // after the sentence
	trialText    = "This is a test call from your telephone server. If you hear this sentence, the sound arrives. Goodbye."
	trialSeconds = 60 // are paid for: a started minute
	trialLasts   = trialRings + trialTalk + 10*time.Second
)

var errTrying = parley.Errorf(parley.Conflict, "A test call is already in progress: wait until it is over.")

var errNoTrial = parley.Errorf(parley.Unavailable,
	"The node of this server that you reached makes no calls, and test calls are made by no other: "+
		"its operator has to give a node both roles, api and calls.")

// Try makes a test call over one of the user's trunks, to a number, an extension or a sip: address at the trunk.
func (d *Center) Try(ctx context.Context, userID, trunkID int64, to string) (*parley.TestCall, error) {
	if d == nil {
		return nil, errNoLine
	}
	if d.Elsewhere != nil {
		return nil, errNoTrial
	}
	t, err := d.DB.Trunk(ctx, userID, trunkID)
	if err != nil {
		return nil, err
	}
	n, err := d.DB.Number(ctx, userID, t.PhoneNumberID)
	if err != nil {
		return nil, err
	}
	if err := d.proved(ctx, n); err != nil {
		return nil, err
	}
	if _, number, _ := parley.TransferTarget(to); number != "" && !d.Destinations.Allow(number) {
		return nil, &Barred{to}
	}
	c := &parley.Call{Type: parley.CallOutbound, CarrierRate: d.carrierRate(parley.CallOutbound, n, to), MaxDuration: trialSeconds}
	if err := d.room(ctx, c, userID); err != nil {
		return nil, err
	}
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.wg.Done()
	x := &trial{Center: d, userID: userID, trunk: t, call: c,
		out: &parley.TestCall{Findings: []parley.TrunkFinding{}, SIP: []parley.SIPMessage{}}}
	if err := x.begin(ctx); err != nil {
		return nil, err
	}
	defer x.end()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(d.ctx, func() { cancel(context.Cause(d.ctx)) })()
	r := Route{Number: *n, Trunk: t, To: to}
	if t.HideCallerID {
		r.Signalling = &parley.CallSignalling{Withheld: true}
	}
	err = x.run(ctx, r)
	return x.out, err
}

// trial is a test call.
type trial struct {
	*Center
	userID int64
	trunk  *parley.Trunk
	until  parley.Time // when it is over at the latest; names it among the user's
	call   *parley.Call
	out    *parley.TestCall
}

func (x *trial) reference() string { return fmt.Sprintf("trunk:%d:%d", x.trunk.ID, x.until) }

// begin makes this the user's only test call on all nodes, counts it to what their calls may cost today, and sets its
// price aside. If this node dies, all that lapses.
func (x *trial) begin(ctx context.Context) error {
	return x.write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.LockUser(ctx, x.userID); err != nil {
			return err
		}
		now := parley.Now()
		x.until = now.Add(trialLasts)
		free, err := tx.BeginTrial(ctx, x.userID, now, x.until)
		if err != nil {
			return err
		}
		if !free {
			return errTrying
		}
		if err := x.spend(ctx, tx, x.userID, x.call.Possible(), now); err != nil {
			return err
		}
		return tx.Reserve(ctx, x.userID, x.reference(), x.call.CarrierRate, x.until)
	})
}

// charge takes the price of the line as soon as somebody has answered: what happens to this server afterwards doesn't
// change it.
func (x *trial) charge() error {
	return x.settle(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Settle(ctx, x.userID, &parley.LedgerEntry{Kind: parley.CarrierCharge, Amount: -x.call.CarrierRate,
			Reference: x.reference(), Description: "Test call over " + x.trunk.Name + ": 1 min over the line"})
		return err
	})
}

// end lets the user make the next one.
func (x *trial) end() {
	err := x.settle(func(ctx context.Context, tx *store.Tx) error {
		if err := tx.EndTrial(ctx, x.userID, x.until); err != nil {
			return err
		}
		return tx.Release(ctx, x.userID, x.reference())
	})
	if err != nil { // it lapses
		slog.Warn("a test call's end was not stored", "user", x.userID, "error", err)
	}
}

// settle writes what must be written also when the caller of the API has gone.
func (x *trial) settle(fn func(context.Context, *store.Tx) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return x.write(ctx, fn)
}

func (x *trial) note(topic string, state parley.FindingState, format string, a ...any) {
	x.out.Findings = append(x.out.Findings, parley.TrunkFinding{Topic: topic, State: state, Text: fmt.Sprintf(format, a...)})
}

// run makes the call. The error is this server's own; what became of the call is in the report.
func (x *trial) run(ctx context.Context, r Route) error {
	began := time.Now()
	since := func() *int64 {
		ms := time.Since(began).Milliseconds()
		return &ms
	}
	dialling, stop := context.WithTimeoutCause(ctx, trialRings, parley.NoAnswer)
	rang := make(chan *int64, 1)
	leg, err := x.Dial(dialling, r, func() {
		select {
		case rang <- since():
		default: // it rings at another place
		}
	})
	stop()
	select {
	case x.out.RingingMS = <-rang:
	default:
	}
	if err != nil {
		x.over(err)
		x.note("call", parley.FindingFail, "%s", x.failure())
		var known signalled
		if errors.As(err, &known) {
			x.out.SIP = append(x.out.SIP, known.Ladder()...)
		}
		if means := preset.Means(x.trunk, refusedWith(x.out.SIP)); means != "" {
			x.note("preset", parley.FindingNote, "%s", means)
		}
		return nil
	}
	defer leg.Hangup()
	x.out.AnsweredMS, x.call.AnsweredAt = since(), parley.DateTime(parley.Now())
	if err := x.charge(); err != nil {
		return err
	}
	err = x.say(ctx, leg)
	x.over(err)
	x.note("call", parley.FindingOK, "Answered after %.1f s.", float64(*x.out.AnsweredMS)/1000)
	if known, ok := leg.(measured); ok {
		x.out.Media = known.Media()
	}
	switch {
	case errors.Is(err, parley.ProviderFailure):
		x.note("sound", parley.FindingFail,
			"This server failed before it could say the sentence, which tells nothing about the trunk. Its log says why.")
	case errors.Is(err, errSaid):
		x.judge()
	default:
		x.note("sound", parley.FindingNote, "The call was over before the whole sentence was said, so that little can be told of its sound.")
		x.judge()
	}
	if known, ok := leg.(signalled); ok {
		x.out.SIP = append(x.out.SIP, known.Ladder()...)
	}
	return nil
}

// over says how the call ended.
func (x *trial) over(err error) {
	if errors.Is(err, errSaid) {
		err = parley.AssistantHangup
	}
	x.call.End(err, parley.Now())
	x.out.Status, x.out.EndedReason, x.out.EndedDetail = x.call.Status, x.call.EndedReason, x.call.EndedDetail
}

// refusedWith is the last status with which an INVITE was refused, 0 for none.
func refusedWith(messages []parley.SIPMessage) int {
	for _, m := range slices.Backward(messages) {
		line, rest, _ := strings.Cut(m.Text, "\n")
		words := strings.Fields(line)
		if m.Direction == "in" && len(words) > 1 && strings.HasPrefix(words[0], "SIP/") && inviteAnswer.MatchString(rest) {
			status, _ := strconv.Atoi(words[1])
			return status
		}
	}
	return 0
}

var inviteAnswer = regexp.MustCompile(`(?mi)^CSeq\s*:.*\bINVITE\b`)

// failure is why nobody answered.
func (x *trial) failure() string {
	switch {
	case x.out.EndedDetail != nil:
		return *x.out.EndedDetail
	case x.out.EndedReason == parley.LineBusy:
		return "The number is busy: the trunk works as far as that."
	case x.out.EndedReason == parley.NoAnswer && x.out.RingingMS != nil:
		return "It rang, and nobody answered: the trunk works as far as that."
	}
	return "Nobody answered."
}

// judge says what the sound was like.
func (x *trial) judge() {
	m := x.out.Media
	switch {
	case m == nil || m.Heard.Packets == 0:
		x.note("sound", parley.FindingFail,
			"No sound came from there. Let UDP to the ports of PARLEY_RTP_PORTS through to this server; behind a NAT, set PARLEY_EXTERNAL_IP.")
	case m.Heard.LossPercent > 2 || m.Heard.MOS < 3.6:
		x.note("sound", parley.FindingNote, "Sound came, but not well: %.1f %% lost, jitter %.0f ms, %.1f of 4.4 (MOS estimate). "+
			"Look at the network in between.", m.Heard.LossPercent, m.Heard.JitterMS, m.Heard.MOS)
	default:
		x.note("sound", parley.FindingOK, "Sound came: %d packets, %.1f %% lost, jitter %.0f ms, %.1f of 4.4 (MOS estimate).", m.Heard.Packets,
			m.Heard.LossPercent, m.Heard.JitterMS, m.Heard.MOS)
	}
	if m == nil {
		return
	}
	switch said := m.Said; {
	case said == nil:
		x.note("sound", parley.FindingNote,
			"The other side reported nothing about what it heard: whoever answered knows whether the sentence arrived.")
	case said.LossPercent > 2:
		x.note("sound", parley.FindingNote, "The other side reports that %.1f %% of the sentence was lost.", said.LossPercent)
	default:
		x.note("sound", parley.FindingOK, "The other side reports that it heard the sentence: %.1f %% lost, %.1f of 4.4 (MOS estimate).",
			said.LossPercent, said.MOS)
	}
	encrypted := "not encrypted"
	if m.Encryption != "" {
		encrypted = "encrypted (" + m.Encryption + ")"
	}
	x.note("codecs", parley.FindingOK, "Both sides agreed on %s, %s.", m.Codec, encrypted)
}

// errSaid ends a test call that is done.
var errSaid = errors.New("the sentence is said")

// say says the sentence to whoever has answered, and hangs up. The error is why the call is over.
func (x *trial) say(ctx context.Context, leg audio.Leg) error {
	ctx, cancel := context.WithTimeoutCause(ctx, trialTalk, errSaid)
	defer cancel()
	ctx, hangUp := context.WithCancelCause(ctx)
	defer hangUp(nil)
	p := &speaker{pcm: make(chan []int16, 1), over: func() { hangUp(errSaid) }, rest: int(trialListens / audio.FrameTime)}
	made := make(chan struct{})
	go func() {
		defer close(made)
		defer crash.Contain(func(err error) {
			slog.Error("the sentence of a test call panicked", "error", err)
			hangUp(parley.ProviderFailure)
		})
		p.pcm <- x.sentence(ctx, leg.Rate())
	}()
	err := leg.Run(ctx, p)
	hangUp(nil)
	<-made
	return err
}

// sentence is the sound of the sentence; a tone if no voice can say it.
func (x *trial) sentence(ctx context.Context, rate audio.Rate) (pcm []int16) {
	known := x.Assistants.Catalog.For(x.userID)
	if voices := known.Voices("pipeline", 1); len(voices) > 0 {
		if heard := known.Heard(voices[0].ID); heard != nil {
			if s, err := x.vendors(x.userID).Synthesizer(heard.Code); err == nil {
				err = ai.Say(ctx, s, ai.Speech{Voice: voices[0].Code, Language: "en", Rate: rate}, trialText,
					func(some []int16) error { pcm = append(pcm, some...); return nil })
				if err == nil && len(pcm) > 0 {
					return pcm
				}
			}
		}
	}
	pcm = make([]int16, 2*int(rate))
	for i := range pcm {
		pcm[i] = int16(8000 * math.Sin(2*math.Pi*440*float64(i)/float64(rate)))
	}
	return pcm
}

// speaker plays one sound to a leg, listens a little longer, and is over.
type speaker struct {
	pcm  chan []int16
	left []int16
	rest int // frames
	over func()
}

func (*speaker) Hear(audio.Frame) {}
func (*speaker) Digit(byte)       {}

func (p *speaker) Tick(_, out audio.Frame) bool {
	if p.pcm != nil {
		select {
		case p.left = <-p.pcm:
			p.pcm = nil
		default:
			return false
		}
	}
	if len(p.left) == 0 {
		if p.rest--; p.rest == 0 {
			p.over()
		}
		return false
	}
	n := copy(out, p.left)
	clear(out[n:])
	p.left = p.left[n:]
	return true
}
