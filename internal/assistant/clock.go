package assistant

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/internal/parley"
)

// clock tells a model the date, the weekday, the time and the time zone of a conversation.
type clock struct {
	zone  *time.Location
	start time.Time // of the conversation
	began time.Time // when that was, by this process's clock
}

// retold is how long a time that was told may be told again. A prompt that stays the same is answered sooner: vendors keep what they have
// read of it.
const retold = 5 * time.Minute

// newClock is the clock of an assistant's conversation, nil where it is told no time: by its owner's choice, or since its prompt has it.
func newClock(a *parley.Assistant, start time.Time) *clock {
	used := parley.VariableNames(a.SystemPrompt)
	if !a.PromptCurrentTime || slices.Contains(used, "current_date") && slices.Contains(used, "current_time") {
		return nil
	}
	return &clock{zoneOf(a), start, time.Now()}
}

// zoneOf is an assistant's time zone.
func zoneOf(a *parley.Assistant) *time.Location {
	zone, err := time.LoadLocation(a.Timezone)
	if err != nil {
		return time.UTC
	}
	return zone
}

// now returns the day of the conversation, with the zone's offset, and the sentence that tells the model the time; "" without a clock.
func (c *clock) now() (day, sentence string) {
	if c == nil {
		return "", ""
	}
	gone := time.Since(c.began)
	now, told := c.start.Add(gone).In(c.zone), c.start.Add(gone.Truncate(retold)).In(c.zone)
	const date = "Monday, 2 January 2006"
	if now.Format(date+"-07:00") != told.Format(date+"-07:00") { // midnight has passed, or the clocks have changed
		told = now
	}
	return told.Format(date + "-07:00"), fmt.Sprintf("It is %s in the time zone %s (UTC%s).", told.Format(date+", 15:04"), c.zone,
		told.Format("-07:00"))
}

// after returns a prompt with the time of the conversation at its end.
func (c *clock) after(prompt string) string {
	_, now := c.now()
	if now == "" {
		return prompt
	}
	return strings.TrimRight(prompt, "\n") + "\n\n" + now
}
