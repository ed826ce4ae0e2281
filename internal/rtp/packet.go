package rtp

import "parley/internal/audio"

const (
	frameTime  = audio.FrameTime
	frameTicks = 160            // of an RTP clock of 8 kHz, which all but Opus have
	headerSize = 12             // of what we send
	maxSent    = 3 * frameTicks // octets of sound in a packet of ours: 60 ms
	maxPacket  = 2048           // octets of one that comes
	noise      = 13             // the payload type of comfort noise at 8 kHz (RFC 3389)
	maxSound   = 8 * frameTicks // octets in a packet: 160 ms
)
