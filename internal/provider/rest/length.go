package rest

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"parley/internal/ai"
)

// lengths are the words in which servers refuse a request that is more than their model takes, with its tokens and
// theirs where they say them. The first one that fits counts.
var lengths = compile(
	// OpenAI, and with it vLLM, DeepSeek, OpenRouter, Together
	`maximum context length (?:is|of) (?P<takes>\d+) tokens?.*?(?:requested|resulted in|request has|contains at least|contains) (?:about )?(?P<asked>\d+)`,
	`maximum context length (?:is|of) (?P<takes>\d+)`,
	`request too large for .* limit (?P<takes>\d+), requested (?P<asked>\d+)`,                    // OpenAI, of tokens per minute
	`exceeds the context window`,                                                                 // OpenAI's newer models
	`prompt \(length (?P<asked>\d+)\) is longer than the maximum model length of (?P<takes>\d+)`, // vLLM
	`input \((?P<asked>\d+) tokens\) is longer than the model's context length \((?P<takes>\d+)`, // SGLang
	`request \((?P<asked>\d+) tokens\) exceeds the available context size \((?P<takes>\d+)`,      // llama.cpp
	`exceeds the available context size(?: \((?P<takes>\d+))?`,                                   // llama.cpp, older
	`context size has been exceeded`,                                                             // llama.cpp, in a stream
	`prompt too long; exceeded max context length`,                                               // Ollama
	`exceeds the (?:maximum )?context length`,                                                    // Ollama
	`greater than the context length`,                                                            // LM Studio
	`maximum prompt length is (?P<takes>\d+) but the request contains (?P<asked>\d+)`,            // xAI
	`prompt contains (?P<asked>\d+) tokens.*?too large for model with (?P<takes>\d+)`,            // Mistral
	`must be <= (?P<takes>\d+)\. given: (?P<asked>\d+)`,                                          // Text Generation Inference
	`must have less than (?P<takes>\d+) tokens\. given: (?P<asked>\d+)`,                          // Text Generation Inference
	`prompt is too long: (?P<asked>\d+) tokens > (?P<takes>\d+)`,                                 // Anthropic
	`prompt is too long`, // Anthropic
	`exceed context limit: (?P<asked>\d+) \+ \d+ > (?P<takes>\d+)`,                                       // Anthropic, with max_tokens
	`input token count \((?P<asked>\d+)\) exceeds the maximum number of tokens allowed \((?P<takes>\d+)`, // Gemini
	`input token count|maximum number of tokens`,                                                         // Gemini
	`context length|context window|context limit|context size|maximum context|too many tokens|reduce the length of the messages`,
)

func compile(list ...string) (out []*regexp.Regexp) {
	for _, text := range list {
		out = append(out, regexp.MustCompile(`(?is)`+text))
	}
	return out
}

var thousands = regexp.MustCompile(`(\d),(\d{3})`)

// TooLong reports whether a server's refusal says that the request is more than its model takes, and tells the numbers
// that it gives. A status of 0 means an error inside a stream.
func TooLong(status int, message string) (e ai.Error, ok bool) {
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusNotFound:
		return e, false
	case status == http.StatusTooManyRequests && !strings.HasPrefix(strings.ToLower(message), "request too large"):
		return e, false // the rate is too high
	}
	message = thousands.ReplaceAllString(message, "$1$2")
	for _, r := range lengths {
		m := r.FindStringSubmatch(message)
		if m == nil {
			continue
		}
		number := func(name string) int {
			i := r.SubexpIndex(name)
			if i < 0 {
				return 0
			}
			n, _ := strconv.Atoi(m[i])
			return n
		}
		return ai.Error{Kind: ai.TooLong, Asked: number("asked"), Takes: number("takes")}, true
	}
	return ai.Error{Kind: ai.TooLong}, status == http.StatusRequestEntityTooLarge
}
