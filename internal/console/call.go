package console

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"parley/internal/call"
	"parley/internal/event"
	"parley/internal/parley"
	"parley/internal/web"
)

// callView is a call as its page shows it.
type callView struct {
	*parley.Call
	told []parley.Delivery // events that tell of it
	sip  []parley.SIPMessage
	legs []parley.CallLeg // who was called in
	// somebody may take part from this browser
	joinable bool
	numbers  []option // that a telephone can be called from
}

func (v *callView) path(more string) string {
	return "/calls/" + strconv.FormatInt(v.ID, 10) + more
}

// call reads one of the user's calls as it stands.
func (c *Console) call(ctx context.Context, r *request) (*callView, error) {
	one, err := c.Calls.Now(ctx, r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	if one.Status.Live() {
		one.Duration = one.Talked(parley.Now())
	}
	v := &callView{Call: one, joinable: c.joinable(one)}
	if v.legs, err = c.DB.CallLegs(ctx, r.UserID(), one.ID); err != nil || !r.may("GET /webhooks") {
		return v, err // addresses of endpoints and headers of SIP may hold tokens
	}
	if v.told, err = c.DB.CallDeliveries(ctx, r.UserID(), one.ID); err != nil {
		return nil, err
	}
	v.sip, err = c.DB.CallSIP(ctx, r.UserID(), one.ID)
	return v, err
}

func (c *Console) callPage(r *request) (*answer, error) {
	v, err := c.call(r.Context(), r)
	if err != nil {
		return nil, err
	}
	if v.Status == parley.CallInProgress {
		if v.numbers, err = c.ownNumbers(r); err != nil {
			return nil, err
		}
	}
	return show("Call with "+v.customer(), callPage(v)), nil
}

// customer is what a call's other side is called.
func (v *callView) customer() string { return callCustomer(v.Call) }

func callCustomer(c *parley.Call) string {
	switch {
	case c.CustomerPhone != nil:
		return parley.FormatPhone(*c.CustomerPhone)
	case c.Type == parley.CallWeb:
		return "a browser"
	case c.Signalling != nil && c.Signalling.Withheld:
		return "a withheld number"
	}
	return "somebody without a number"
}

// verificationText says in words whether a caller may use the number that is shown.
func verificationText(v *parley.CallVerification) string {
	text := map[parley.VerificationResult]string{parley.Verified: "Verified", parley.VerificationFailed: "Failed",
		parley.Unverified: "Not verified"}[v.Result]
	if v.By == parley.ByCarrier {
		text += " by the carrier"
	}
	knows := map[string]string{"A": "the caller's provider knows the caller, and that the number is the caller's (A)",
		"B": "the caller's provider knows the caller, but not the number (B)", "C": "only where the call came from is known (C)"}[v.Attestation]
	switch {
	case v.Reason != "":
		return text + ": " + v.Reason
	case knows != "":
		return text + ": " + knows
	}
	return text
}

// infoText is what a call says that there is of its caller.
func infoText(i parley.CallInfo) string {
	switch i.Purpose {
	case "icon":
		return "picture"
	case "card", "jcard":
		return "card"
	}
	return "page"
}

// callLive sends what changes of a call's page: its turns and tools as they come, what is being said, and where it is
// in its life. Only the node that has the call knows the words that are still being spoken.
func (c *Console) callLive(r *request) (*answer, error) {
	v, err := c.call(r.Context(), r)
	if err != nil {
		return nil, err
	}
	sent, shape := map[string]string{}, ""
	look := func(s *stream) ([]string, error) {
		now, err := c.call(r.Context(), r)
		if err != nil {
			return nil, err
		}
		for _, p := range now.parts() {
			if sent[p.id] != p.version {
				sent[p.id] = p.version
				s.put(p.body)
			}
		}
		if at := now.shape(); at != shape {
			shape = at
			s.send("list", map[string]string{"version": at})
		}
		return []string{call.Topic(now.ID)}, nil
	}
	return c.follow(r, look, func(s *stream, e event.Event) bool {
		text, ok := e.Data.(string)
		if e.Kind != call.Partial || !ok {
			return true
		}
		sent["partial"] = text
		s.put(partial(v, text))
		return false
	})
}

// shape changes when the page becomes another: when the call is over, and when its recording is there.
func (v *callView) shape() string {
	return fmt.Sprintf("%t.%t.%t.%t", v.Status.Live(), v.Status == parley.CallInProgress, v.Recording != "", v.RecordingDue)
}

// parts are the pieces of the page that change by themselves.
func (v *callView) parts() (list []part) {
	if v.Status.Live() {
		for _, s := range v.scenes() {
			list = append(list, part{s.id, s.version(), sceneOf(s)})
		}
		list = append(list, part{"partial", "", partial(v, "")}) // sent once: then as it is heard
	}
	if v.Status.Live() {
		list = append(list, part{"sound", v.soundVersion(), callSound(v)}, part{"legs", v.legsVersion(), callLegs(v)})
	}
	return append(list, part{"call-state", v.stateVersion(), callState(v)},
		part{"facts", v.factsVersion(), callFacts(v)}, part{"sip", strconv.Itoa(len(v.sip)), callSIP(v)},
		part{"told", v.toldVersion(), callTold(v)})
}

func (v *callView) stateVersion() string {
	return fmt.Sprintf("%s.%s", v.Status, v.EndedReason)
}

func (v *callView) factsVersion() string {
	return fmt.Sprintf("%s.%s.%d.%d.%d.%d.%d.%d.%t", v.Status, v.AnsweredBy, len(v.VendorUses), len(v.VendorSwitches), len(v.Variables),
		len(v.Evaluation), len(v.InputVariables), v.TotalCost(), v.ReportDue == 0)
}

func (v *callView) toldVersion() string {
	var b strings.Builder
	for _, d := range v.told {
		fmt.Fprintf(&b, "%d.%s.%d ", d.ID, d.Status, d.Attempts)
	}
	return b.String()
}

// soundVersion changes when what is shown of the sound does.
func (v *callView) soundVersion() string {
	m := v.Media
	if m == nil {
		return ""
	}
	text := m.Codec + m.Encryption + soundText(m.Heard)
	if m.Said != nil {
		text += soundText(*m.Said)
	}
	text += strconv.Itoa(m.Strangers) + " " + strconv.Itoa(m.Still)
	if m.RoundTripMS != nil {
		text += strconv.FormatInt(*m.RoundTripMS, 10)
	}
	return text
}

// diversionText is who sent a call on, and why.
func diversionText(d parley.Diversion) string {
	who := d.PhoneNumber
	switch {
	case who == "":
		who = "a withheld number"
	case strings.HasPrefix(who, "+"):
		who = parley.FormatPhone(who)
	}
	if d.Reason == "" {
		return who
	}
	return who + " (" + strings.ReplaceAll(d.Reason, "-", " ") + ")"
}

// title is the first line of a message.
func title(m parley.SIPMessage) string {
	line, _, _ := strings.Cut(m.Text, "\r\n")
	return line
}

// soundText is how sound was, in a line.
func soundText(s parley.CallSound) string {
	return fmt.Sprintf("%.1f of 4.4 (MOS estimate), %.1f %% lost, jitter %.0f ms", s.MOS, s.LossPercent, s.JitterMS)
}

// scene is a turn of a call, a tool that was used in it, or a vendor that went on for another.
type scene struct {
	id   string
	ms   int64 // since the answer
	turn *parley.CallTurn
	tool *parley.CallTool
	next *parley.VendorSwitch
}

func (s *scene) version() string {
	if s.tool != nil {
		return strconv.Itoa(len(s.tool.Result)) // one in the background is answered later
	}
	if s.turn == nil {
		return "once"
	}
	return fmt.Sprintf("%d.%t.%s", len(s.turn.Text), s.turn.Interrupted, s.turn.Language)
}

// scenes are the turns and the tools of a call, in their order.
func (v *callView) scenes() []scene {
	list := make([]scene, 0, len(v.Turns)+len(v.FunctionCalls))
	for i := range v.Turns {
		list = append(list, scene{id: "t-" + strconv.Itoa(i), ms: v.Turns[i].StartedAtMS, turn: &v.Turns[i]})
	}
	for i := range v.FunctionCalls {
		list = append(list, scene{id: "x-" + strconv.Itoa(i), ms: v.FunctionCalls[i].AtMS, tool: &v.FunctionCalls[i]})
	}
	for i := range v.VendorSwitches {
		list = append(list, scene{id: "v-" + strconv.Itoa(i), ms: v.VendorSwitches[i].AtMS, next: &v.VendorSwitches[i]})
	}
	slices.SortStableFunc(list, func(a, b scene) int { return cmp.Compare(a.ms, b.ms) })
	return list
}

func (c *Console) callHangup(r *request) (*answer, error) {
	if err := c.Calls.Hangup(r.Context(), r.UserID(), r.id("id")); err != nil {
		return nil, err
	}
	return callBack(r, "hung-up"), nil
}

func (c *Console) callDelete(r *request) (*answer, error) {
	if err := c.Calls.Delete(r.Context(), r.UserID(), r.id("id")); err != nil {
		return nil, err
	}
	return see("/calls", "deleted"), nil
}

// recording opens the recording of one of the user's calls.
func (c *Console) recording(r *request) (*parley.Call, io.ReadSeekCloser, error) {
	one, err := c.DB.Call(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, nil, err
	}
	o, err := c.Calls.OpenRecording(r.Context(), one)
	return one, o, err
}

// legRecording streams the recording of somebody who was called into a call.
func (c *Console) legRecording(r *request) (*answer, error) {
	leg, err := c.DB.CallLeg(r.Context(), r.UserID(), r.id("id"), r.id("leg"))
	if err != nil {
		return nil, err
	}
	o, err := c.Calls.OpenLegRecording(r.Context(), leg)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	web.SendRecording(r.w, r.Request, fmt.Sprintf("call-%d-leg-%d", leg.CallID, leg.ID), parley.Time(leg.EndedAt).Time(), o)
	return nil, nil
}

// callRecording streams a call's recording, or the range of it that a player asks for.
func (c *Console) callRecording(r *request) (*answer, error) {
	one, o, err := c.recording(r)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	web.SendRecording(r.w, r.Request, fmt.Sprintf("call-%d", one.ID), parley.Time(one.EndedAt).Time(), o)
	return nil, nil
}
