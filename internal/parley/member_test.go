package parley_test

import (
	"encoding/json"
	"strings"
	"testing"

	"parley/internal/parley"
)

func TestRole(t *testing.T) {
	for _, c := range []struct {
		have, need parley.Role
		may        bool
	}{
		{parley.RoleOwner, parley.RoleOwner, true}, {parley.RoleOwner, parley.RoleViewer, true},
		{parley.RoleEditor, parley.RoleOwner, false}, {parley.RoleEditor, parley.RoleAgent, true},
		{parley.RoleAgent, parley.RoleEditor, false}, {parley.RoleAgent, parley.RoleViewer, true},
		{parley.RoleViewer, parley.RoleAgent, false}, {parley.RoleViewer, parley.RoleViewer, true},
		{parley.RoleOwner, parley.RoleBilling, true}, {parley.RoleAdministrator, parley.RoleBilling, false},
		{parley.RoleAdministrator, parley.RoleOwner, false}, {parley.RoleAdministrator, parley.RoleEditor, true},
		{parley.RoleAdministrator, parley.NeedLedger, true}, {parley.RoleEditor, parley.NeedLedger, false},
		{parley.RoleBilling, parley.RoleViewer, false}, {parley.RoleBilling, parley.NeedLedger, true},
		{parley.RoleBilling, parley.NeedSession, true},
		{parley.RoleAuditor, parley.RoleViewer, true}, {parley.RoleAuditor, parley.RoleAgent, false},
		{parley.RoleAuditor, parley.NeedLedger, true},
		{"", parley.RoleViewer, false}, {"boss", parley.RoleViewer, false}, {"boss", "boss", false}, {parley.RoleOwner, "boss", false},
	} {
		if c.have.Includes(c.need) != c.may {
			t.Errorf("%q includes %q: %v", c.have, c.need, !c.may)
		}
	}
	for _, c := range [][3]parley.Role{{parley.RoleOwner, parley.RoleAgent, parley.RoleAgent},
		{parley.RoleViewer, parley.RoleEditor, parley.RoleViewer}, {"boss", parley.RoleEditor, "boss"}, {parley.RoleOwner, "boss", "boss"},
		{parley.RoleOwner, parley.RoleAuditor, parley.RoleAuditor}, {parley.RoleAdministrator, parley.RoleAuditor, parley.RoleAuditor},
		{parley.RoleEditor, parley.RoleAuditor, parley.RoleViewer}, {parley.RoleAuditor, parley.RoleAgent, parley.RoleViewer},
		{parley.RoleAdministrator, parley.RoleBilling, "none"}, {parley.RoleBilling, parley.RoleViewer, "none"},
		{parley.RoleOwner, parley.RoleBilling, parley.RoleBilling}} {
		if got := parley.Least(c[0], c[1]); got != c[2] {
			t.Errorf("the least of %q and %q is %q", c[0], c[1], got)
		}
	}
}

// An auditor reads what others may change, but no secrets, and changes nothing: nothing but reading is included.
func TestAuditorReads(t *testing.T) {
	for need, want := range map[parley.Role]bool{parley.RoleViewer: true, parley.RoleEditor: true, parley.RoleAdministrator: true,
		parley.NeedLedger: true, parley.NeedSecrets: false, parley.RoleBilling: false, parley.RoleOwner: false, "boss": false} {
		if got := parley.RoleAuditor.Reads(need); got != want {
			t.Errorf("reads what needs %s: %v", need, got)
		}
	}
	for _, role := range []parley.Role{parley.RoleViewer, parley.RoleAgent, parley.RoleEditor, parley.RoleBilling} {
		if role.Reads(parley.RoleAdministrator) {
			t.Errorf("%s reads what needs an administrator", role)
		}
	}
}

// Who may not change an assistant does not learn its secrets, and the assistant itself stays as it is.
func TestAssistantForRole(t *testing.T) {
	url := "https://example.com/?token=sesame"
	a := &parley.Assistant{Name: "Desk", Variables: map[string]string{"code": "sesame"}, WebhookURL: &url, InboundWebhookURL: &url,
		ConversationEndedURL: &url, Tools: []parley.AssistantTool{{Name: "look", Endpoint: url,
			Headers: []parley.ToolHeader{{Name: "X-Key", Value: "sesame"}}}},
		MidCallTools: []parley.Tool{{Name: "look", Endpoint: url, Headers: []parley.ToolHeader{{Name: "X-Key", Value: "sesame"}}}}}
	all := func(a *parley.Assistant) string {
		b, err := json.Marshal([]any{a, a.MidCallTools})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	before := all(a)
	for role, hidden := range map[parley.Role]bool{parley.RoleOwner: false, parley.RoleAdministrator: false, parley.RoleEditor: false,
		parley.RoleAgent: true, parley.RoleViewer: true, parley.RoleAuditor: true, parley.RoleBilling: true, "boss": true} {
		if got := all(a.For(role)); strings.Contains(got, "sesame") == hidden || !strings.Contains(got, "Desk") ||
			!strings.Contains(got, `"code"`) {
			t.Errorf("%s sees %s", role, got)
		}
	}
	if all(a) != before {
		t.Error("the assistant has changed")
	}
}
