package api_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
)

var serial atomic.Int64

// word is a unique name of letters and underscores.
func word() string {
	var b strings.Builder
	for n := serial.Add(1); n > 0; n /= 26 {
		b.WriteByte(byte('a' + n%26))
	}
	return "tool_" + b.String()
}

// with is base with some keys changed; a nil value takes a key out.
func with(base map[string]any, change map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range base {
		out[k] = v
	}
	for k, v := range change {
		if out[k] = v; v == nil {
			delete(out, k)
		}
	}
	return out
}

func toolBody() map[string]any {
	return map[string]any{"name": word(), "description": "Looks up an order.",
		"endpoint": "https://example.com/orders", "method": "GET"}
}

// assistantBody has only the fields that a new assistant must have.
func (h *harness) assistantBody() map[string]any {
	return map[string]any{"name": "Desk", "voice_id": h.voice("pipeline", 1), "language_id": 1, "type": "inbound",
		"mode":     "pipeline",
		"timezone": "Europe/Berlin", "system_prompt": "Be kind.", "llm_model_id": h.model("llm")}
}

func (h *harness) voice(mode string, language int) int64 {
	h.Helper()
	return h.first(fmt.Sprintf("/user/assistants/voices?mode=%s&language_id=%d", mode, language))
}

func (h *harness) model(kind string) int64 {
	h.Helper()
	return h.first("/user/assistants/models?type=" + kind)
}

func (h *harness) first(path string) int64 {
	h.Helper()
	list := h.get(path, status(200)).list()
	if len(list) == 0 {
		h.Fatalf("%s is empty", path)
	}
	return id(list[0])
}

// id is the id in an object.
func id(thing map[string]any) int64 {
	n, err := strconv.ParseInt(string(thing["id"].(json.Number)), 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

// tool makes a mid-call tool and assistant makes an assistant, each with some fields changed.
func (h *harness) tool(change map[string]any) int64 {
	h.Helper()
	return id(h.post("/user/tools", with(toolBody(), change), status(201)).json()["data"].(map[string]any))
}

func (h *harness) assistant(change map[string]any) int64 {
	h.Helper()
	return id(h.post("/user/assistant", with(h.assistantBody(), change), status(201)).json()["data"].(map[string]any))
}
