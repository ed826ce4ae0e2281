package parley

// VendorSwitch is that another vendor did a part of a call from a moment on: the one before failed, or answers again.
type VendorSwitch struct {
	AtMS   int64  `json:"at_ms" doc:"Since the answer."`
	Part   string `json:"part" enum:"model,voice,recognizer"`
	From   string `json:"from" doc:"The vendor, with its model or voice."`
	To     string `json:"to"`
	Reason string `json:"reason" doc:"How the one before failed, such as stalled or rate limited; empty when the first one answers again."`
}
