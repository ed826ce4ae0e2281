package channel

import (
	"context"

	"github.com/riverqueue/river"

	"parley/internal/billing"
	"parley/internal/carrier"
	"parley/internal/chat"
	"parley/internal/parley"
	"parley/internal/store"
)

// Declaration is what a channel declares of itself. The program's settings and their page, and the doctor's report
// are made of declarations.
type Declaration struct {
	Code string // its settings begin with it
	// Settings points to a struct of settings of the program, as an ai.Vendor's do; nil: there are none.
	Settings any
	// Open makes the channel. It asks nobody anything, and fails where the settings can't be used.
	Open func(House) (Channel, error)
	// Check says what is well, what is missing, and how to mend it; nil: there is nothing to say. publicURL is where
	// the server is reached.
	Check func(ctx context.Context, publicURL string) []parley.Finding
}

// House is what the program gives to every channel.
type House struct {
	DB      *store.DB
	Prices  *billing.Prices
	Limits  Limits
	Carrier carrier.Carrier // of the rented numbers
	Sandbox bool            // it is the sandbox
	Chat    *chat.Chat      // answers what comes in; it tells the channels of replies
}

// Channel is what the program does with every channel.
type Channel interface {
	// Replied sends what was said in a conversation to the customer, where that came or goes this way: a chat.Replied.
	Replied(ctx context.Context, tx *store.Tx, conv *parley.Conversation, asked, reply *parley.Message) error
	// AddWorkers registers the workers of the channel's jobs, Periodic are those that time causes.
	AddWorkers(*river.Workers)
	Periodic() []*river.PeriodicJob
	// Close lets connections go.
	Close()
}
