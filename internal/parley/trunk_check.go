package parley

// TrunkFinding is one thing that a check of a trunk found out.
type TrunkFinding struct {
	Topic string       `json:"topic" enum:"dns,options,tls,registration,nat,codecs,encryption,call,sound,preset"`
	State FindingState `json:"state" enum:"ok,note,fail"`
	Text  string       `json:"text" doc:"What was found, and how to fix it if something is wrong."`
}

// FindingState says whether something is as it should be.
type FindingState string

// The states of findings.
const (
	FindingOK   FindingState = "ok"
	FindingNote FindingState = "note" // worth knowing
	FindingFail FindingState = "fail"
)

// TestCall is what became of a call that tried a trunk.
type TestCall struct {
	Status      CallStatus     `json:"status"`
	EndedReason EndedReason    `json:"ended_reason"`
	EndedDetail *string        `json:"ended_detail"`
	RingingMS   *int64         `json:"ringing_ms" doc:"How long it took until it rang; null if it did not."`
	AnsweredMS  *int64         `json:"answered_ms" doc:"How long it took until somebody answered; null if nobody did."`
	Findings    []TrunkFinding `json:"findings"`
	Media       *CallMedia     `json:"media" doc:"Sound quality; null without any sound."`
	SIP         []SIPMessage   `json:"sip" doc:"The call's SIP messages, in order."`
}
