package console

import (
	"net/url"
	"strings"
	"testing"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
)

// An endpoint is made, measured and changed on its page, which never shows its secrets, and is chosen in an assistant.
func TestEndpointPages(t *testing.T) {
	h := open(t)
	u := h.user(t)
	v := h.signedIn(t, u)
	model := aitest.NewServer(t)
	form := v.get("/endpoints/new").form("/endpoints/new")
	form["name"], form["url"], form["model"] = []string{"mine"}, []string{model.URL}, []string{""}
	form["api_key"] = []string{"sk-of-the-account-1234"}
	form["headers.0.name"], form["headers.0.value"] = []string{"X-Team"}, []string{"the-team-secret"}
	v.post("/endpoints/new", form).is(422).says("is required")
	form["model"] = []string{aitest.ModelName}
	at := strings.TrimSuffix(v.post("/endpoints/new", form).is(303).header.Get("Location"), "?done=created")
	page := v.get(at).is(200)
	if strings.Contains(page.body, "sk-of-the-account") || strings.Contains(page.body, "the-team-secret") ||
		!strings.Contains(page.body, "1234") {
		t.Errorf("the page shows a secret, or no hint of the key")
	}
	form = page.form(at)
	form["wait_ms"] = []string{"900"}
	v.post(at, form).is(303)
	list, err := h.DB.Endpoints(t.Context(), u.ID)
	if err != nil || len(list) != 1 || list[0].Key != "sk-of-the-account-1234" || list[0].WaitMS != 900 ||
		len(list[0].Headers) != 1 || list[0].Headers[0].Value != "the-team-secret" {
		t.Fatalf("%+v %v", list, err)
	}
	model.Script(aitest.Behaviour{Text: "one, two, three, four, five."},
		aitest.Behaviour{Calls: []ai.ToolCall{{ID: "c", Name: "code_of_the_day", Arguments: "{}"}}}, aitest.Behaviour{Text: "It is blue-742."},
		aitest.Behaviour{Text: "one, two, three, four, five."}, aitest.Behaviour{Text: "stopped."})
	v.post(at+"/test", url.Values{}).is(200).says("It called the tool and told its result.")
	v.get("/endpoints").is(200).says("mine")

	a := h.assistant(t, u, "Front desk")
	path := "/assistants/" + id(a.ID)
	edit := v.get(path).form(path)
	edit["llm_model_id"] = []string{id(list[0].ListedID())}
	v.publish(path, edit)
	got, err := h.Assistants.Get(t.Context(), u.ID, a.ID)
	if err != nil || got.LLMEndpointID == nil || *got.LLMEndpointID != list[0].ID || got.Endpoint("llm_model_id") == nil {
		t.Fatalf("%+v: %v", got.LLMEndpointID, err)
	}
	form["forget_key"] = []string{"1"}
	v.post(at, form).is(303)
	if e, err := h.DB.Endpoint(t.Context(), u.ID, list[0].ID); err != nil || e.Key != "" {
		t.Errorf("the key is still there: %v", err)
	}
	v.post(at+"/delete", url.Values{}).is(303)
	v.get(at).is(404)
}
