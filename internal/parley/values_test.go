package parley

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A constant of a closed set that Values omits would be a value that no client expects.
func TestValuesAreAll(t *testing.T) {
	sets := map[string]interface{ Values() []string }{"CallType": CallType(""), "CallStatus": CallStatus(""),
		"EndedReason": EndedReason(""),
		"AnsweredBy":  AnsweredBy(""), "CampaignStatus": CampaignStatus(""),
		"ConversationType": ConversationType(""), "EventKind": EventKind(""),
		"DeliveryStatus": DeliveryStatus(""), "KnowledgeStatus": KnowledgeStatus(""),
		"DocumentType": DocumentType(""), "LeadStatus": LeadStatus(""),
		"Outcome": Outcome(""), "LedgerKind": LedgerKind(""), "NumberType": NumberType(""), "SMSStatus": SMSStatus("")}
	found := map[string][]string{}
	visit := func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		typ, named := spec.Type.(*ast.Ident)
		lit, constant := spec.Values[0].(*ast.BasicLit)
		if named && constant && sets[typ.Name] != nil {
			text, _ := strconv.Unquote(lit.Value)
			found[typ.Name] = append(found[typ.Name], text)
		}
		return true
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(name, "_test.go") {
			ast.Inspect(f, visit)
		}
	}
	for name, set := range sets {
		want, got := found[name], slices.DeleteFunc(set.Values(), func(s string) bool { return s == "" })
		slices.Sort(want)
		slices.Sort(got)
		if len(want) == 0 || !slices.Equal(got, want) {
			t.Errorf("%s: Values are %q, its constants %q", name, got, want)
		}
	}
}
