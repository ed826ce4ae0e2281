package parley

import (
	"maps"
	"slices"

	"github.com/uptrace/bun"
)

// AssistantDraft is what somebody changes of an assistant before it goes live. It has the changed fields only: what
// changes meanwhile of the others is the draft's too.
type AssistantDraft struct {
	bun.BaseModel `bun:"assistant_drafts" json:"-"`

	AssistantID int64    `bun:",pk" json:"assistant_id"`
	UserID      int64    `json:"-"`
	Author      string   `json:"author" doc:"Who saved it last."`
	Base        Time     `json:"based_on" doc:"updated_at of the live assistant when the draft was begun."`
	Sealed      []byte   `bun:"sealed_changes" json:"-"` // Changes as they are stored
	Changes     Settings `bun:"-" json:"-"`
	CreatedAt   Time     `json:"created_at"`
	UpdatedAt   Time     `json:"updated_at"`

	// as it stands to the live assistant now
	Changed     []string            `bun:"-" json:"changed" doc:"The fields in which it differs from the live assistant."`
	LiveChanged bool                `bun:"-" json:"live_changed" doc:"The live assistant has changed since the draft was begun."`
	Problems    map[string][]string `bun:"-" json:"problems" doc:"What must be fixed before it can be published, by field."`
	Assistant   *Assistant          `bun:"-" json:"assistant" doc:"The assistant as it would be when published."`
}

// Judged notes what keeps a draft from being published.
func (d *AssistantDraft) Judged(wrong Fields) {
	d.Problems = map[string][]string{}
	for _, f := range wrong {
		d.Problems[f.Name] = f.Messages
	}
}

// Wrong are the problems as failing fields.
func (d *AssistantDraft) Wrong() (f Fields) {
	for _, name := range slices.Sorted(maps.Keys(d.Problems)) {
		f = append(f, Field{name, d.Problems[name]})
	}
	return f
}
