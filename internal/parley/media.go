package parley

// CallMedia is how the sound of a telephone call was, as this end counted it and the far end's reports (RTCP) told it.
type CallMedia struct {
	Codec       string     `json:"codec"`
	Encryption  string     `json:"encryption" doc:"The SRTP suite; empty if the sound was not encrypted."`
	RoundTripMS *int64     `json:"round_trip_ms" doc:"null if the far end's reports don't tell."`
	Heard       CallSound  `json:"heard" doc:"Sound from the far end, as it arrived here."`
	Said        *CallSound `json:"said" doc:"Our sound, as the far end reported it; null if it reported nothing."`
	// encrypted packets that the far end's key did not fit, or that came again
	Unreadable int `json:"unreadable_packets,omitempty"`
	// Refused are packets of sound that were not decoded: longer than they can be, or far more than the time that passed.
	Refused int `json:"refused_packets,omitempty"`
	// Still are packets whose timestamp stood still while their numbers went on: their lengths made the time.
	Still int `json:"still_timestamp_packets,omitempty"`
	// Strangers are packets from addresses that the signalling does not name, which were not heard, and Stranger is the last of these.
	Strangers int    `json:"stranger_packets,omitempty"`
	Stranger  string `json:"stranger,omitempty"`
}

// CallSound is sound in one direction.
type CallSound struct {
	Packets     int     `json:"packets"`
	LossPercent float64 `json:"loss_percent"`
	JitterMS    float64 `json:"jitter_ms"`
	MOS         float64 `json:"mos" doc:"1 to 4.4: an estimate by the E-model (ITU-T G.107) from loss, jitter and delay."`
}

// SIPMessage is one of a call's, as it went over the wire, without what proves a password or decrypts sound.
type SIPMessage struct {
	At        Time   `json:"at"`
	Direction string `json:"direction" enum:"in,out" doc:"in: from the far end."`
	Transport string `json:"transport" enum:"udp,tcp,tls"`
	Peer      string `json:"peer" doc:"The far end's address."`
	Text      string `json:"text" doc:"The message, without passwords and keys."`
}
