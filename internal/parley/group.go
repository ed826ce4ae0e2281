package parley

import "github.com/uptrace/bun"

// GroupKind tells folders from labels.
type GroupKind string

// An assistant is in one folder at most, and has any number of labels.
const (
	Folder GroupKind = "folder"
	Label  GroupKind = "label"
)

// Title is a kind as a sentence begins with it.
func (k GroupKind) Title() string {
	if k == Folder {
		return "Folder"
	}
	return "Label"
}

// Group is a folder or a label by which an account orders its assistants.
type Group struct {
	bun.BaseModel `bun:"assistant_groups" json:"-"`

	ID              int64     `bun:",pk,autoincrement" json:"id" readOnly:"true"`
	UserID          int64     `json:"-"`
	Kind            GroupKind `json:"-"`
	Name            string    `json:"name" required:"true" maxLength:"255" doc:"Used once among the folders, or the labels, of an account."`
	Color           *string   `json:"color" enum:"gray,slate,red,orange,amber,green,teal,blue,purple,pink"`
	AssistantsCount int64     `bun:",scanonly" json:"assistants_count" readOnly:"true"`
	CreatedAt       Time      `json:"created_at" readOnly:"true"`
	UpdatedAt       Time      `json:"updated_at" readOnly:"true"`
}

// GroupColors are the colours that a group may have.
var GroupColors = []string{"gray", "slate", "red", "orange", "amber", "green", "teal", "blue", "purple", "pink"}
