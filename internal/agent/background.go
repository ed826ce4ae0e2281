package agent

import (
	"fmt"

	"parley/internal/ai"
)

// backgroundAnswer is how many tokens of the answer of a tool in the background the model is told: it stays in the conversation.
const backgroundAnswer = 4_000

// Started is what the model is told of a tool that was started in the background, as the conversation's n-th.
func Started(n int) string {
	return fmt.Sprintf("The tool was started in the background, as no. %d. Its answer will be told to you when it comes. Go on with the "+
		"conversation, and don't call the tool again for the same.", n)
}

// Answered tells the model what a tool in the background has answered.
func Answered(name string, n int, result string) ai.Message {
	return ai.Message{Role: ai.User, Text: fmt.Sprintf("[The tool %q, which was started in the background as no. %d, has answered. Tell the "+
		"customer what matters of it, in the language of the conversation.]\n%s", name, n, Shorten(result, backgroundAnswer))}
}

// TooManyStarted is what the model is told where as many tools run in the background as may.
func TooManyStarted(most int) error {
	return fmt.Errorf("%d tools run in the background already: go on with the conversation until one of them has answered", most)
}
