package parley

import "github.com/uptrace/bun"

// Note is what somebody of the account's wrote down about a conversation. Neither the model nor the customer reads it.
type Note struct {
	bun.BaseModel `bun:"conversation_notes" json:"-"`

	ID             int64    `bun:",pk,autoincrement" json:"id"`
	ConversationID string   `json:"-"`
	Author         string   `json:"author" doc:"Who wrote it."`
	Content        string   `json:"content"`
	CreatedAt      DateTime `json:"created_at"`
}

// CannedAnswer is a text that people of the account send often, by its name.
type CannedAnswer struct {
	bun.BaseModel `bun:"canned_answers" json:"-"`

	ID        int64    `bun:",pk,autoincrement" json:"id"`
	UserID    int64    `json:"-"`
	Name      string   `json:"name"`
	Content   string   `json:"content"`
	CreatedAt DateTime `json:"created_at"`
	UpdatedAt DateTime `json:"updated_at"`
}

// CannedAnswerInput is what a canned answer is made of.
type CannedAnswerInput struct {
	Name string `json:"name" required:"true" maxLength:"64" pattern:"^[^\\s/]+$" must:"contain no spaces and no slashes" doc:"What is typed after a slash to insert it; stored in lowercase, and unique in the account."`
	// as long as a person's reply may be
	Content string `json:"content" required:"true" maxLength:"2000"`
}

// The most of them that there may be.
const (
	MaxNotes         = 200 // of a conversation
	MaxCannedAnswers = 200 // of an account
)
