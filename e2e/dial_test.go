package e2e

import (
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley/internal/audio"
	"parley/internal/parley"
	"parley/internal/simulator/phone"
)

// trunk makes a trunk whose far end is a port on this machine, and an assistant that calls over it.
func (l *line) trunk(t *testing.T, port int, fields map[string]any) {
	t.Helper()
	var made struct {
		Data struct {
			PhoneNumberID int64 `json:"phone_number_id"`
		}
	}
	status := l.call(t, "POST", "/user/phone-numbers/sip-trunks",
		map[string]any{"name": "The exchange", "phone_number": "+4930901820" + strconv.Itoa(port%10),
			"sip_address": fmt.Sprintf("127.0.0.1:%d", port), "inbound_authorization_type": "ip",
			"allowed_inbound_ips": []string{"127.0.0.1"}}, &made)
	if status != http.StatusCreated {
		t.Fatalf("the trunk is answered %d", status)
	}
	l.outbound(t, made.Data.PhoneNumberID, fields)
}

// outbound makes an assistant that calls from a number; from then on it is the one that the tests change.
func (l *line) outbound(t *testing.T, number int64, fields map[string]any) {
	t.Helper()
	var a map[string]any
	l.call(t, "GET", fmt.Sprintf("/user/assistant/%d", l.Assistant), nil, &a)
	a["name"], a["type"], a["phone_number_id"], a["initial_message"] = "Caller", "outbound", number,
		"Good morning, this is the bakery."
	for k, v := range fields {
		a[k] = v
	}
	var made struct {
		Data   struct{ ID int64 }
		Errors map[string][]string
	}
	if status := l.call(t, "POST", "/user/assistant", a, &made); status != http.StatusCreated {
		t.Fatalf("the assistant is answered %d %v", status, made.Errors)
	}
	l.Assistant = made.Data.ID
}

// dial has the assistant call a number.
func (l *line) dial(t *testing.T, to string) (id int64) {
	t.Helper()
	var made struct {
		CallID  int64 `json:"call_id"`
		Message string
	}
	if status := l.call(t, "POST", "/user/make_call",
		map[string]any{"phone_number": to, "assistant_id": l.Assistant}, &made); status != http.StatusOK {
		t.Fatalf("make_call is answered %d %s", status, made.Message)
	}
	return made.CallID
}

// until waits until a call is in a state.
func (l *line) until(t *testing.T, id int64, status parley.CallStatus) (c talk) {
	t.Helper()
	eventually(t, "call "+strconv.FormatInt(id, 10)+" to be "+string(status), func() bool {
		c = l.talk(t, id)
		if c.Status != status && !c.Status.Live() {
			t.Fatalf("call %d is %s by %s, never %s\n%s", id, c.Status, c.EndedReason, status, l.log)
		}
		return c.Status == status
	})
	return c
}

// hangup has the API hang up.
func (l *line) hangup(t *testing.T, id int64) {
	t.Helper()
	if status := l.call(t, "POST", fmt.Sprintf("/user/calls/%d/hangup", id), nil, nil); status != http.StatusOK {
		t.Errorf("hangup is answered %d", status)
	}
}

// sipp runs a scenario of testdata/sipp on a port. finish waits for its end, which must be successful.
func (l *line) sipp(t *testing.T, scenario string, port int, files map[string][]byte, args ...string) (finish func()) {
	t.Helper()
	need(t, "sipp")
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file, err := filepath.Abs("testdata/sipp/" + scenario + ".xml")
	if err != nil {
		t.Fatal(err)
	}
	args = append([]string{"-sf", file, "-i", "127.0.0.1", "-mi", "127.0.0.1", "-p", strconv.Itoa(port), "-mp",
		strconv.Itoa(port + 100), "-nostdin",
		"-trace_err", "-error_file", filepath.Join(dir, "errors")}, args...)
	cmd := exec.Command("sipp", args...)
	cmd.Dir = dir
	printed := &logBuffer{}
	cmd.Stdout, cmd.Stderr = printed, printed
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	over := false
	finish = func() {
		if over {
			return
		}
		over = true
		select {
		case err = <-ended:
		case <-time.After(patience):
			cmd.Process.Kill()
			err = fmt.Errorf("it went on for too long: %w", <-ended)
		}
		if err != nil {
			wrong, _ := os.ReadFile(filepath.Join(dir, "errors"))
			t.Errorf("sipp %s: %v\n%s\n%s", scenario, err, wrong, printed)
		}
	}
	t.Cleanup(finish)
	return finish
}

// How an assistant's call ends, depending on the far end: sipp, over a trunk.
func TestDial(t *testing.T) {
	share(t, call)
	l := telephone(t)
	port := l.ports
	before := l.balance(t)
	l.trunk(t, port, map[string]any{"ringing_time": 2})
	free := func(t *testing.T) {
		t.Helper()
		if now := l.balance(t); now != before {
			t.Errorf("nobody answered, and the balance went from %v to %v", before, now)
		}
	}
	t.Run("busy", func(t *testing.T) {
		finish := l.sipp(t, "busy", port, nil, "-m", "1")
		l.dial(t, "+4930901820123")
		l.over(t).expect(t, parley.CallBusy, parley.LineBusy)
		free(t)
		finish()
	})
	t.Run("no answer", func(t *testing.T) {
		finish := l.sipp(t, "ringing", port, nil, "-m", "1")
		l.until(t, l.dial(t, "+4930901820123"), parley.CallRinging)
		l.over(t).expect(t, parley.CallNoAnswer, parley.NoAnswer)
		free(t)
		finish()
	})
	t.Run("taken back", func(t *testing.T) {
		finish := l.sipp(t, "ringing", port, nil, "-m", "1")
		id := l.dial(t, "+4930901820123")
		l.until(t, id, parley.CallRinging)
		l.hangup(t, id)
		l.over(t).expect(t, parley.CallCanceled, parley.Canceled)
		free(t)
		finish()
	})
	t.Run("answered", func(t *testing.T) {
		hello := append(speech(t, "Hello?"), make([]int16, 8000)...)
		finish := l.sipp(t, "answer", port, map[string][]byte{"speech.ulaw": audio.EncodeULaw(nil, hello)}, "-m", "1")
		id := l.dial(t, "+4930901820123")
		l.until(t, id, parley.CallInProgress)
		eventually(t, "the greeting", func() bool { return strings.Contains(l.talk(t, id).Transcript, "bakery") })
		l.hangup(t, id)
		c := l.over(t)
		c.expect(t, parley.CallCompleted, parley.APIHangup)
		if c.TotalCost <= 0 {
			t.Errorf("it cost %v", c.TotalCost)
		}
		finish()
	})
	t.Run("voicemail", func(t *testing.T) {
		l.change(t, map[string]any{"voice_mail_message": "Please call us back.", "end_call_on_voicemail": 1})
		greeting := append(speech(t, "You have reached my voice mail. I am not available. Please leave a message after the tone."),
			make([]int16, 3000)...)
		greeting = append(append(greeting, tone(1000, 500*time.Millisecond)...), make([]int16, 30*8000)...)
		finish := l.sipp(t, "answer", port, map[string][]byte{"speech.ulaw": audio.EncodeULaw(nil, greeting)}, "-m",
			"1")
		l.dial(t, "+4930901820123")
		c := l.over(t)
		c.expect(t, parley.CallCompleted, parley.Voicemail)
		if said := c.said("assistant"); len(said) == 0 || said[len(said)-1] != "Please call us back." ||
			c.AnsweredBy != parley.AnsweredMachine {
			t.Errorf("answered by %s; said %q", c.AnsweredBy, said)
		}
		finish()
	})
}

// A person with a telephone answers an assistant's call and hangs up.
func TestDialPerson(t *testing.T) {
	share(t, call)
	l := telephone(t)
	exchange, err := phone.ListenOn(netip.MustParseAddrPort(fmt.Sprintf("127.0.0.1:%d", l.ports)))
	if err != nil {
		t.Fatal(err)
	}
	defer exchange.Close()
	l.trunk(t, l.ports, map[string]any{"initial_message": "Good morning, {{who}}.",
		"variables": map[string]any{"who": "Ana"}})
	id := l.dial(t, "+4930901820123")
	ctx, cancel := timeout(t, patience)
	defer cancel()
	in, err := exchange.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(in.To, "4930901820123") || !strings.Contains(in.From, "4930901820") {
		t.Errorf("%s calls %s", in.From, in.To)
	}
	in.Ring()
	l.until(t, id, parley.CallRinging)
	c, err := in.Answer()
	if err != nil {
		t.Fatal(err)
	}
	at := hears(t, c, c.Answered)
	t.Logf("200 to the first packet of the greeting: %v", at.Sub(c.Answered).Round(time.Millisecond))
	silent(t, c, 500*time.Millisecond)
	if err := c.Hangup(); err != nil {
		t.Error(err)
	}
	row := l.over(t)
	row.expect(t, parley.CallCompleted, parley.CustomerHangup)
	if said := row.said("assistant"); len(said) != 1 || said[0] != "Good morning, Ana." {
		t.Errorf("said %q", said)
	}
	if odd := exchange.Odd(); len(odd) > 0 {
		t.Error(odd)
	}
}

// The far end of a server without a trunk: the sandbox's numbers, by the last four digits of the called number.
func TestDialSandbox(t *testing.T) {
	share(t, recognizer)
	need(t, "flite", "pocketsphinx_batch")
	l := telephone(t)
	number, _ := l.purchase(t)
	l.outbound(t, number, map[string]any{"ringing_time": 2, "voice_mail_message": "Please call us back.",
		"end_call_on_voicemail": 1})
	calls := map[string]struct {
		to     string
		status parley.CallStatus
		reason parley.EndedReason
	}{
		"busy":      {"+12025550003", parley.CallBusy, parley.LineBusy},
		"no answer": {"+12025550004", parley.CallNoAnswer, parley.NoAnswer},
		"voicemail": {"+12025550005", parley.CallCompleted, parley.Voicemail},
		"a person":  {"+12025550123", parley.CallCompleted, parley.CustomerHangup},
	}
	ids := map[string]int64{}
	for name, c := range calls { // at the same time
		ids[name] = l.dial(t, c.to)
	}
	for name, want := range calls {
		t.Run(name, func(t *testing.T) {
			var c talk
			eventually(t, "the call's end", func() bool { c = l.talk(t, ids[name]); return !c.Status.Live() })
			c.expect(t, want.status, want.reason)
			t.Logf("%d s, answered by %s\n%s", c.Duration, c.AnsweredBy, c.Transcript)
			switch name {
			case "voicemail":
				if said := c.said("assistant"); len(said) == 0 || said[len(said)-1] != "Please call us back." ||
					c.AnsweredBy != parley.AnsweredMachine {
					t.Errorf("answered by %s; said %q", c.AnsweredBy, said)
				}
			case "a person":
				if len(c.said("assistant")) < 3 || c.AnsweredBy != parley.AnsweredHuman {
					t.Errorf("answered by %s\n%s", c.AnsweredBy, c.Transcript)
				}
			}
		})
	}
}

// A call screener and a menu take an assistant's calls, as real sound: the screener hears a name and is waited for, the
// menu gets its key, and who then picks up is greeted.
func TestDialMachines(t *testing.T) {
	share(t, recognizer)
	need(t, "flite", "pocketsphinx_batch")
	l := telephone(t)
	exchange, err := phone.ListenOn(netip.MustParseAddrPort(fmt.Sprintf("127.0.0.1:%d", l.ports)))
	if err != nil {
		t.Fatal(err)
	}
	defer exchange.Close()
	l.trunk(t, l.ports, map[string]any{"wait_for_customer": true, "end_call_on_voicemail": 1,
		"tools": []map[string]any{{"type": "dtmf_input", "description": "an operator"}}})
	answer := func() (*phone.Call, int64) {
		id := l.dial(t, "+4930901820123")
		ctx, cancel := timeout(t, patience)
		defer cancel()
		in, err := exchange.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		c, err := in.Answer()
		if err != nil {
			t.Fatal(err)
		}
		return c, id
	}
	kinds := func(id int64) string {
		var row struct {
			AnswerVerdicts []parley.CallVerdict `json:"answer_verdicts"`
		}
		l.call(t, "GET", fmt.Sprintf("/user/calls/%d", id), nil, &row)
		var out []string
		for _, v := range row.AnswerVerdicts {
			if v.Reason == "" || v.AtMS <= 0 {
				t.Errorf("%+v", v)
			}
			out = append(out, string(v.Kind))
		}
		return strings.Join(out, " ")
	}
	finish := func(c *phone.Call, id int64, kind string) {
		before := len(l.talk(t, id).said("assistant"))
		c.Say(speech(t, "Hello?"))
		eventually(t, "who picks up is greeted", func() bool {
			said := l.talk(t, id).said("assistant")
			return len(said) > before && strings.Contains(strings.Join(said, " "), "bakery")
		})
		if err := c.Hangup(); err != nil {
			t.Error(err)
		}
		row := l.over(t)
		row.expect(t, parley.CallCompleted, parley.CustomerHangup)
		if got := kinds(id); !strings.Contains(got, kind) || !strings.HasSuffix(got, "person") || row.AnsweredBy != parley.AnsweredHuman {
			t.Errorf("verdicts %s, answered by %s\n%s", got, row.AnsweredBy, row.Transcript)
		}
	}

	c, id := answer()
	c.Say(speech(t, "Please say your name, and the reason for your call. Please say your name now."))
	eventually(t, "the screener is told a name", func() bool { return len(l.talk(t, id).said("assistant")) == 1 })
	finish(c, id, "screener")

	c, id = answer()
	c.Say(speech(t, "Press one for sales. Press two for an operator."))
	eventually(t, "the key", func() bool { return c.Digits() == "2" })
	finish(c, id, "menu")
	if odd := exchange.Odd(); len(odd) > 0 {
		t.Error(odd)
	}
}
