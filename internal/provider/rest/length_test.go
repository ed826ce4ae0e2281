package rest

import "testing"

// Servers say in many words that a request is more than their model takes. A row for each kind: what is said, the
// request's tokens and the model's, -1 where it is another refusal.
func TestTooLong(t *testing.T) {
	for _, c := range []struct {
		status       int
		message      string
		asked, takes int
	}{
		{400, "This model's maximum context length is 8192 tokens. However, your messages resulted in 10273 tokens. " +
			"Please reduce the length of the messages.", 10273, 8192},
		{400, "This model's maximum context length is 4097 tokens. However, you requested 5360 tokens (1360 in the messages, " +
			"4000 in the completion). Please reduce the length of the messages or completion.", 5360, 4097},
		{400, "This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens. " +
			"Please reduce the length of the input messages.", 5000, 4096},
		{400, "This endpoint's maximum context length is 131,072 tokens. However, you requested about 140,500 tokens (140,500 of text input). " +
			"Please reduce the length of either one.", 140500, 131072},
		{400, "Your input exceeds the context window of this model. Please adjust your input and try again.", 0, 0},
		{429, "Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Requested 48212. " +
			"The input or output tokens must be reduced in order to run successfully.", 48212, 30000},
		{400, "The decoder prompt (length 10000) is longer than the maximum model length of 4096. " +
			"Make sure that `max_model_len` is no smaller than the number of text tokens.", 10000, 4096},
		{400, "'max_tokens' or 'max_completion_tokens' is too large: 4096. " +
			"This model's maximum context length is 4096 tokens and your request has 22 input tokens (4096 > 4096 - 22).", 22, 4096},
		{400, "the request exceeds the available context size, try increasing it", 0, 0},
		{400, "request (10265 tokens) exceeds the available context size (4096 tokens), try increasing it", 10265, 4096},
		{0, "Context size has been exceeded.", 0, 0},
		{400, "prompt too long; exceeded max context length by 1207 tokens", 0, 0},
		{400, "the input length exceeds the context length", 0, 0},
		{400, "The number of tokens to keep from the initial prompt is greater than the context length. " +
			"Try to load the model with a larger context length, or provide a shorter input", 0, 0},
		{400, "The input (9813 tokens) is longer than the model's context length (8192 tokens).", 9813, 8192},
		{400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 537812, 131072},
		{400, "Prompt contains 40311 tokens and 0 draft tokens, too large for model with 32768 maximum context length", 40311, 32768},
		{422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5213 `inputs` tokens and 100 `max_new_tokens`",
			5213, 4096},
		{422, "Input validation error: `inputs` must have less than 1024 tokens. Given: 2048", 2048, 1024},
		{400, "too many tokens: total number of tokens in the prompt cannot exceed 4081", 0, 0},
		{400, "prompt is too long: 208310 tokens > 200000 maximum", 208310, 200000},
		{400, "input length and `max_tokens` exceed context limit: 197202 + 21333 > 200000, decrease input length or `max_tokens` and try again",
			197202, 200000},
		{400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", 1200000, 1048576},
		{400, "The input token count exceeds the maximum number of tokens allowed 1048576.", 0, 0},
		{413, "", 0, 0},

		{400, "Unsupported value: 'temperature' does not support 0.2 with this model.", -1, -1},
		{400, "tools is not supported", -1, -1},
		{401, "Incorrect API key provided. See the page on context length.", -1, -1},
		{429, "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000.", -1, -1},
		{404, "The model with a larger context window does not exist", -1, -1},
	} {
		e, is := TooLong(c.status, c.message)
		if is != (c.asked >= 0) || is && (e.Asked != c.asked || e.Takes != c.takes) {
			t.Errorf("%d %s: %v, %d of %d", c.status, c.message, is, e.Asked, e.Takes)
		}
	}
}
