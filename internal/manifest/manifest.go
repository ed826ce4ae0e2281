// Package manifest is an account as files: one YAML file a thing, with names in place of a server's ids and references in
// place of secrets. It reads an account by the HTTP API and files from a folder, says what differs, and makes the one like
// the other. The files and the plan are pure; client.go alone talks with a server.
package manifest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"parley/internal/parley"
)

// Kind is a kind of thing that an account has.
type Kind struct {
	Dir  string // the folder of its files
	Word string // what one is called

	typ  reflect.Type // the fields of a file
	path string       // of the API, for those that are made and changed in the usual way
	refs []ref
	// fields that the server fills in when they are empty: they are left to it then
	usual []string
	whole bool // a file has all fields, those with their defaults too
	part  bool // a file has some fields: those that it lacks are as they are in the thing that it is of
}

// ref is a field that holds ids of other things, or of what the server offers.
type ref struct {
	in    string // the list of objects that the field is in; "": the thing itself
	id    string // as the API calls it
	name  string // as files call it
	of    string // what it names: a kind's folder, or one of the server's lists
	many  bool
	needs bool // it must be there
	set   bool // the order of many says nothing
}

// The server's own lists that things refer to.
const (
	languages    = "language"
	voices       = "voice"
	llms         = "language model"
	multimodals  = "multimodal model"
	synthesizers = "synthesizer provider"
	transcribers = "transcriber provider"
)

// The folders.
const (
	accountDir    = ""
	folderDir     = "folders"
	labelDir      = "labels"
	toolDir       = "tools"
	knowledgeDir  = "knowledgebases"
	trunkDir      = "trunks"
	numberDir     = "numbers"
	assistantDir  = "assistants"
	draftDir      = "drafts"
	testDir       = "tests"
	campaignDir   = "campaigns"
	alertDir      = "alerts"
	filterDir     = "filters"
	accountFile   = "account.yaml"
	fileExtension = ".yaml"
)

// assistantRefs are those of an assistant and its draft.
var assistantRefs = []ref{
	{id: "phone_number_id", name: "phone_number", of: numberDir},
	{id: "language_id", name: "language", of: languages, needs: true},
	{id: "secondary_language_ids", name: "secondary_languages", of: languages, many: true},
	{id: "voice_id", name: "voice", of: voices, needs: true},
	{id: "llm_model_id", name: "llm_model", of: llms},
	{id: "multimodal_model_id", name: "multimodal_model", of: multimodals},
	{id: "synthesizer_provider_id", name: "synthesizer_provider", of: synthesizers},
	{id: "transcriber_provider_id", name: "transcriber_provider", of: transcribers},
	{id: "fallback_llm_model_ids", name: "fallback_llm_models", of: llms, many: true},
	{id: "fallback_multimodal_model_ids", name: "fallback_multimodal_models", of: multimodals, many: true},
	{id: "fallback_voice_ids", name: "fallback_voices", of: voices, many: true},
	{id: "fallback_transcriber_provider_ids", name: "fallback_transcriber_providers", of: transcribers, many: true},
	{id: "knowledgebase_id", name: "knowledgebase", of: knowledgeDir},
	{id: "tool_ids", name: "mid_call_tools", of: toolDir, many: true},
	{id: "folder_id", name: "folder", of: folderDir},
	{id: "label_ids", name: "labels", of: labelDir, many: true, set: true},
	{in: "tools", id: "assistant_id", name: "assistant", of: assistantDir},
	{in: "tools", id: "outbound_phone_id", name: "outbound_phone", of: numberDir},
}

// Kinds are all kinds, in the order in which things are made: those that others refer to come first.
var Kinds = []*Kind{
	{Dir: accountDir, Word: "account", typ: reflect.TypeFor[accountFields](), whole: true},
	{Dir: folderDir, Word: "folder", typ: reflect.TypeFor[parley.Group](), path: "/user/folders"},
	{Dir: labelDir, Word: "label", typ: reflect.TypeFor[parley.Group](), path: "/user/labels"},
	{Dir: toolDir, Word: "tool", typ: reflect.TypeFor[parley.Tool](), path: "/user/tools"},
	{Dir: knowledgeDir, Word: "knowledgebase", typ: reflect.TypeFor[knowledgeFields](), path: "/user/knowledgebases"},
	{Dir: trunkDir, Word: "trunk", typ: reflect.TypeFor[parley.TrunkInput](), path: "/user/phone-numbers/sip-trunks",
		usual: []string{"name", "country_code"}},
	{Dir: assistantDir, Word: "assistant", typ: reflect.TypeFor[parley.Assistant](), path: "/user/assistants", refs: assistantRefs},
	{Dir: testDir, Word: "test"},
	{Dir: numberDir, Word: "number", typ: reflect.TypeFor[numberFields](), refs: []ref{
		{id: "trunk_id", name: "trunk", of: trunkDir},
		{in: "route", id: "otherwise_assistant_id", name: "otherwise_assistant", of: assistantDir},
	}, usual: []string{"route.timezone"}},
	{Dir: campaignDir, Word: "campaign", typ: reflect.TypeFor[parley.Campaign](), path: "/user/campaigns", refs: []ref{
		{id: "assistant_id", name: "assistant", of: assistantDir, needs: true},
		{id: "phone_number_ids", name: "phone_numbers", of: numberDir, many: true},
	}, usual: []string{"timezone", "max_calls_in_parallel"}},
	{Dir: alertDir, Word: "alert", typ: reflect.TypeFor[parley.Alert](), path: "/user/alerts", refs: []ref{
		{id: "assistant_id", name: "assistant", of: assistantDir},
	}},
	{Dir: filterDir, Word: "saved filter", typ: reflect.TypeFor[filterFields](), path: "/user/filters", refs: []ref{
		{in: "filter", id: "assistant_id", name: "assistant", of: assistantDir},
		{in: "filter", id: "campaign_id", name: "campaign", of: campaignDir},
		{in: "filter", id: "phone_number_id", name: "own_number", of: numberDir},
	}},
	{Dir: draftDir, Word: "draft", typ: reflect.TypeFor[parley.Assistant](), refs: assistantRefs, part: true},
}

// kindOf is the kind whose files are in a folder.
func kindOf(dir string) *Kind {
	i := slices.IndexFunc(Kinds, func(k *Kind) bool { return k.Dir == dir })
	if i < 0 {
		return nil
	}
	return Kinds[i]
}

// accountFields are what an account has once.
type accountFields struct {
	WebhookURL *string `json:"webhook_url" maxLength:"2048" format:"http-url"`
}

// numberFields are what is set of a number. Numbers are rented, or come with a trunk: a file makes none.
type numberFields struct {
	PhoneNumber string              `json:"phone_number" required:"true" maxLength:"32"`
	TrunkID     *int64              `json:"trunk_id"`
	Nickname    *string             `json:"nickname" maxLength:"50"`
	Route       *parley.NumberRoute `json:"route"`
}

// knowledgeFields are a knowledgebase and what it is made of.
type knowledgeFields struct {
	Name        string           `json:"name" required:"true" maxLength:"255"`
	Description *string          `json:"description" maxLength:"255"`
	Documents   []documentFields `json:"documents" maxItems:"10000"`
}

// documentFields are a website, or a file that lies in the folder of the knowledgebase.
type documentFields struct {
	Name               string              `json:"name" required:"true" maxLength:"255"`
	Description        *string             `json:"description" maxLength:"255"`
	Type               parley.DocumentType `json:"type" required:"true" enum:"website,pdf,txt,docx"`
	URL                string              `json:"url" maxLength:"2048" format:"http-url"`
	Links              []string            `json:"links" maxItems:"50" maxLength:"2048" format:"http-url"`
	RelativeLinksLimit int                 `json:"relative_links_limit" default:"10" minimum:"1" maximum:"50"`
	File               string              `json:"file" maxLength:"1024"`
}

// filterFields are a saved filter, with its parameters one by one.
type filterFields struct {
	Page   string            `json:"page" required:"true" enum:"calls,analytics"`
	Name   string            `json:"name" required:"true" maxLength:"100"`
	Filter map[string]string `json:"filter" required:"true" maxProperties:"50" format:"variables"`
}

// Thing is one thing of an account.
type Thing struct {
	Kind *Kind
	Path string // its file, such as assistants/front-desk.yaml
	Name string
	ID   int64 // the server's; 0 of one that is in files alone

	// Body are its fields as files have them, all of them: what is not written has its default. Names stand for ids, and
	// of a thing of the server's, secrets are what they are.
	Body   map[string]any
	Script string            // a test's alone, in place of Body
	Of     *Thing            // the assistant whose test or draft it is; the trunk that has the number
	Files  map[string][]byte // of a knowledgebase: the contents of its documents by their paths
	lines  map[string]int
	secret map[string]string // of the server's: the references by the places of the secrets
	docs   []int64           // of the server's: the ids of a knowledgebase's documents
}

// Account is all there is.
type Account struct {
	Things   []*Thing // by kind, in the order of Kinds, and then by path
	Warnings []string // what of it could not be read, or is not in files
}

// of are the things of a kind.
func (a *Account) of(dir string) (list []*Thing) {
	for _, t := range a.Things {
		if t.Kind.Dir == dir {
			list = append(list, t)
		}
	}
	return list
}

// sort brings the things into their order.
func (a *Account) sort() {
	slices.SortStableFunc(a.Things, func(x, y *Thing) int {
		return cmp.Or(cmp.Compare(slices.Index(Kinds, x.Kind), slices.Index(Kinds, y.Kind)), comparePaths(x.Path, y.Path))
	})
}

// comparePaths orders files so that a-2.yaml comes after a.yaml.
func comparePaths(x, y string) int {
	xs, xn := numbered(strings.TrimSuffix(x, fileExtension))
	ys, yn := numbered(strings.TrimSuffix(y, fileExtension))
	return cmp.Or(strings.Compare(xs, ys), cmp.Compare(xn, yn), strings.Compare(x, y))
}

// refText is how other files name a thing: by its name, or by its file where others of the kind have that name too.
func refText(t *Thing, all []*Thing) string {
	for _, other := range all {
		if other != t && other.Name == t.Name {
			return fileOf(t)
		}
	}
	if strings.HasSuffix(t.Name, fileExtension) {
		return fileOf(t)
	}
	return t.Name
}

// fileOf is the file of a thing without the folder of its kind.
func fileOf(t *Thing) string { return strings.TrimPrefix(t.Path, t.Kind.Dir+"/") }

// find is the thing of a list that a text names.
func find(text string, all []*Thing) *Thing {
	var found *Thing
	for _, t := range all {
		if strings.HasSuffix(text, fileExtension) {
			if fileOf(t) == text {
				return t
			}
		} else if t.Name == text {
			if found != nil {
				return nil
			}
			found = t
		}
	}
	return found
}

// sortTexts brings the names of a set into their order.
func sortTexts(list []any) {
	slices.SortFunc(list, func(x, y any) int { return strings.Compare(fmt.Sprint(x), fmt.Sprint(y)) })
}

// number is a whole number as a tree has it.
func number(n int64) json.Number { return json.Number(jsonText(n)) }

func jsonText(v any) string {
	raw, _ := json.Marshal(v)
	return string(raw)
}
