package e2e

import (
	"net/http"
	"testing"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
)

// The assistant has the page do something, in the widget's chat and in its call, and is told what came of it.
func TestPageTools(t *testing.T) {
	share(t, webCall)
	s, model := thinking(t, "PARLEY_WEBRTC_LISTEN=127.0.0.1:0")
	var made struct{ Data struct{ ID int64 } }
	tool := map[string]any{"kind": "client", "name": "show_product", "description": "Shows a product on the page.",
		"schema": []any{map[string]any{"name": "product", "type": "string", "description": "Its number"}}}
	if status := s.call(t, "POST", "/user/tools", tool, &made); status != http.StatusCreated {
		t.Fatalf("the tool is answered %d", status)
	}
	s.assistant(t, map[string]any{"initial_message": "Hello.", "tool_ids": []any{made.Data.ID},
		"widget_settings": map[string]any{"mode": "both"}})
	p := browse(t, fakeMicrophone(microphone(t, 3, "what time do you open tomorrow", 120))...)
	p.expect("Parley: no tool: no")
	p.before(`addEventListener("parley", () => ParleyWidget.tools({ show_product: async ({ product }) => {
		if (product === "0") throw new Error("no such product");
		if (product === "2") throw "";
		if (product === "1") return "x".repeat(70000);
		document.title = "Product " + product;
		return { shown: product };
	}, "no name": () => 1, no_function: "x" }))`)
	p.open(website(t, s, ""))
	p.tap(".launch")
	p.focused("textarea")
	// ask has the model ask for a product, then say something; told is what it was told of the product.
	ask := func(product, then string) {
		model.Script(aitest.Behaviour{Calls: []ai.ToolCall{{ID: "1", Name: "show_product", Arguments: `{"product":"` + product + `"}`}}},
			aitest.Behaviour{Text: then})
	}
	told := func(want string) {
		t.Helper()
		q := model.Requests()
		if last := q[len(q)-1].Messages; last[len(last)-1].Text != want {
			t.Errorf("the model is told %q, want %q", last[len(last)-1].Text, want)
		}
	}
	for _, c := range []struct{ product, told, then string }{
		{"4711", `{"shown":"4711"}`, "There it is."},
		{"0", "The tool failed: no such product.", "I can't find it."},
		{"1", "The tool failed: the result is too long.", "That was too much."},
		{"2", "The tool failed: it failed.", "It did not work."},
	} {
		ask(c.product, c.then)
		p.say("Show me " + c.product)
		p.told(".log .assistant", c.then)
		told(c.told)
	}
	p.until("document.title === 'Product 4711'")
	p.shot("widget-page-tool", false)

	ask("4712", "You can see it now.")
	p.tap("[aria-label=Call]")
	p.told("[role=log] .assistant", "Hello.")
	p.until("document.title === 'Product 4712'")
	p.told("[role=log] .assistant", "You can see it now.")
	told(`{"shown":"4712"}`)
	p.tap(".end")
	p.told(".notice", "The call has ended.")
	s.lastCall(t, "completed")
}
