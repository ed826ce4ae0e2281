package parley

import "github.com/uptrace/bun"

// MaxVoicemailSeconds is how long a recorded message for voicemails may be.
const MaxVoicemailSeconds = 60

// VoicemailUpload bounds a form with a recorded message. It is five times what a message needs, so that one that is too long
// is read to its end and refused in words: a browser that is cut off while it sends shows none.
const VoicemailUpload = 64 << 20

// VoicemailRecording is a message that somebody has spoken for the voicemails that an assistant reaches. It is played in
// place of voice_mail_message.
type VoicemailRecording struct {
	bun.BaseModel `bun:"voicemail_recordings" json:"-"`

	AssistantID int64    `bun:",pk" json:"assistant_id"`
	UserID      int64    `json:"-"`
	Blob        string   `json:"-"` // its name in blob storage
	DurationMS  int64    `json:"duration_ms"`
	CreatedAt   DateTime `json:"created_at"`
}
