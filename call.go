package parley

import "strings"

// CallType says how a call came to be.
type CallType string

// The types of calls.
const (
	CallInbound  CallType = "inbound"
	CallOutbound CallType = "outbound"
	CallWeb      CallType = "web" // from a browser
)

// CallStatus is where a call is in its life. The last five are ends.
type CallStatus string

// The states of a call.
const (
	CallInitiated  CallStatus = "initiated"
	CallRinging    CallStatus = "ringing"
	CallInProgress CallStatus = "in-progress"
	CallCompleted  CallStatus = "completed"
	CallBusy       CallStatus = "busy"
	CallNoAnswer   CallStatus = "no-answer"
	CallFailed     CallStatus = "failed"
	CallCanceled   CallStatus = "canceled"
)

// Live says whether the call is not over.
func (s CallStatus) Live() bool {
	return s == CallInitiated || s == CallRinging || s == CallInProgress
}

// EndedReason says why a call is over. It is an error, so that it can be the cause that a context ends with, and what a leg's Run and a
// dialler return.
type EndedReason string

// The reasons.
const (
	CustomerHangup      EndedReason = "customer_hangup"
	AssistantHangup     EndedReason = "assistant_hangup"
	APIHangup           EndedReason = "api_hangup"
	Transferred         EndedReason = "transferred"
	MaxDuration         EndedReason = "max_duration"
	MaxSilence          EndedReason = "max_silence"
	Voicemail           EndedReason = "voicemail"
	LineBusy            EndedReason = "busy"
	NoAnswer            EndedReason = "no_answer"
	Rejected            EndedReason = "rejected"
	Unreachable         EndedReason = "unreachable"
	Canceled            EndedReason = "canceled"
	InsufficientBalance EndedReason = "insufficient_balance"
	ProviderFailure     EndedReason = "provider_failure"
	MediaTimeout        EndedReason = "media_timeout"
	NodeLost            EndedReason = "node_lost"
	Shutdown            EndedReason = "shutdown"
)

func (r EndedReason) Error() string {
	return "the call ended: " + strings.ReplaceAll(string(r), "_", " ")
}

// ReasonOfSIP is why a call that a SIP status (300 to 699) refused was not answered.
func ReasonOfSIP(code int) EndedReason {
	switch code {
	case 486, 600:
		return LineBusy
	case 480, 408:
		return NoAnswer
	case 603:
		return Rejected
	case 487:
		return Canceled
	}
	return Unreachable
}

// EndStatus is the state that a call ends in: answered ones are completed, however they ended, the others by their reason.
func (r EndedReason) EndStatus(answered bool) CallStatus {
	switch {
	case answered && (r == ProviderFailure || r == NodeLost):
		return CallFailed
	case answered:
		return CallCompleted
	case r == LineBusy:
		return CallBusy
	case r == NoAnswer:
		return CallNoAnswer
	case r == Canceled || r == APIHangup || r == CustomerHangup:
		return CallCanceled
	}
	return CallFailed
}

// AnsweredBy says who took a call.
type AnsweredBy string

// Who answers.
const (
	AnsweredUnknown AnsweredBy = "unknown" // no verdict (yet)
	AnsweredHuman   AnsweredBy = "human"
	AnsweredMachine AnsweredBy = "machine"
)

// Who speaks in a call.
const (
	SpeakerCustomer  = "customer"
	SpeakerAssistant = "assistant"
)

// CallTurn is what one side said in one go, as it was heard.
type CallTurn struct {
	Speaker     string   `json:"speaker"`
	Text        string   `json:"text"`
	StartedAtMS int64    `json:"started_at_ms" doc:"Since the answer."`
	Interrupted bool     `json:"interrupted" doc:"The other side cut it off; text ends where its sound did."`
	Latency     *Latency `json:"latency,omitempty" doc:"Of replies."`
}

// Latency says when each part of a reply was there, in milliseconds since the customer's last voiced packet. A part that a reply did
// without is 0.
type Latency struct {
	EndpointMS      int64 `json:"endpoint_ms" doc:"The customer's turn was taken for over."`
	TranscriptMS    int64 `json:"transcript_ms" doc:"What they said was known."`
	FirstTokenMS    int64 `json:"first_token_ms"`
	FirstSentenceMS int64 `json:"first_sentence_ms"`
	FirstAudioMS    int64 `json:"first_audio_ms"`
	FirstPacketMS   int64 `json:"first_packet_ms" doc:"The first sound of the reply left."`
}

// CallTranscript is the turns as lines: "AI: ..." and "Customer: ...".
func CallTranscript(turns []CallTurn) string {
	var b strings.Builder
	for _, t := range turns {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		if t.Speaker == SpeakerAssistant {
			b.WriteString("AI: ")
		} else {
			b.WriteString("Customer: ")
		}
		b.WriteString(strings.Join(strings.Fields(t.Text), " "))
	}
	return b.String()
}
