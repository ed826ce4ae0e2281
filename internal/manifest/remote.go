package manifest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"parley/internal/parley"
	"parley/internal/schema"
)

// Server is a server's side: the account that is there, and what the server offers.
type Server struct {
	*Client
	offer
}

// offered is a language, voice, model or provider of a server.
type offered struct {
	id       int64
	text     string // as files name it
	language int64  // of a voice
	realtime bool   // of a voice: it speaks inside a realtime model
	kind     parley.ModelKind
}

// offer are the lists of what a server offers, by their names.
type offer map[string][]offered

// text is how files name what has an id, or the id where the server does not list it.
func (o offer) text(of string, id int64) any {
	for _, e := range o[of] {
		if e.id == id {
			return e.text
		}
	}
	return number(id)
}

// id is the id of what a text names. An assistant's language and mode tell voices and models apart.
func (o offer) id(of, text string, language int64, mode string) (int64, error) {
	var there []string
	for _, e := range o[of] {
		fits := of != voices || e.language == language && e.realtime == (mode == "multimodal")
		fits = fits && (of != multimodals || mode == "pipeline" || string(e.kind) == mode)
		if fits && e.text == text {
			return e.id, nil
		}
		if fits && !slices.Contains(there, e.text) {
			there = append(there, e.text)
		}
	}
	if len(there) == 0 {
		return 0, fmt.Errorf("the server has no %s %s", of, text)
	}
	more := ""
	if len(there) > 12 {
		there, more = there[:12], ", …"
	}
	return 0, fmt.Errorf("the server has no %s %s: it has %s%s", of, text, strings.Join(there, ", "), more)
}

// Open reads what a server offers.
func Open(ctx context.Context, c *Client) (*Server, error) {
	s := &Server{c, offer{}}
	type row struct {
		ID                    int64
		Code, Name            string
		LanguageID            int64  `json:"language_id"`
		SynthesizerProviderID *int64 `json:"synthesizer_provider_id"`
		RealtimeVendor        string `json:"realtime_vendor"`
		ISO                   string `json:"iso_2"`
	}
	list := func(of, path string, put func(r row) offered) error {
		var rows []row
		err := s.ask(ctx, "GET", path, nil, &rows)
		if err != nil {
			return err
		}
		for _, r := range rows {
			one := put(r)
			one.id = r.ID
			s.offer[of] = append(s.offer[of], one)
		}
		return nil
	}
	coded := func(r row) offered { return offered{text: r.Code} }
	kind := func(k parley.ModelKind) func(row) offered {
		return func(r row) offered { return offered{text: r.Code, kind: k} }
	}
	err := errors.Join(
		list(languages, "/user/assistants/languages", func(r row) offered { return offered{text: r.ISO} }),
		list(synthesizers, "/user/assistants/synthesizer-providers", coded),
		list(transcribers, "/user/assistants/transcriber-providers", coded),
		list(llms, "/user/assistants/models?type=llm", kind(parley.LLM)),
		list(multimodals, "/user/assistants/models?type=multimodal", kind(parley.Multimodal)),
		list(multimodals, "/user/assistants/models?type=dualplex", kind(parley.Dualplex)))
	if err != nil {
		return nil, err
	}
	return s, list(voices, "/user/assistants/voices", func(r row) offered {
		vendor := r.RealtimeVendor
		if r.SynthesizerProviderID != nil {
			vendor, _ = s.offer.text(synthesizers, *r.SynthesizerProviderID).(string)
		}
		return offered{text: vendor + "/" + r.Code, language: r.LanguageID, realtime: r.SynthesizerProviderID == nil}
	})
}

// Read reads the whole account. Things that have a file in before, which may be nil, keep its name.
func (s *Server) Read(ctx context.Context, before *Account) (*Account, error) {
	a := &Account{}
	all := map[string][]map[string]any{}
	lists := []struct {
		dir, path string
		read      func(ctx context.Context, path string) ([]map[string]any, error)
	}{
		{folderDir, "/user/folders?per_page=100", s.pages}, {labelDir, "/user/labels?per_page=100", s.pages},
		{toolDir, "/user/tools", s.rows}, {knowledgeDir, "/user/knowledgebases", s.data},
		{trunkDir, "/user/phone-numbers/sip-trunks", s.data}, {numberDir, "/user/phone-numbers/all", s.data},
		{assistantDir, "/user/assistants", s.rows},
		{campaignDir, "/user/campaigns", s.rows}, {alertDir, "/user/alerts", s.rows}, {filterDir, "/user/filters", s.data},
	}
	for _, l := range lists {
		rows, err := l.read(ctx, l.path)
		if err != nil {
			return nil, err
		}
		slices.SortFunc(rows, func(x, y map[string]any) int { return int(idOf(x, "id") - idOf(y, "id")) })
		all[l.dir] = rows
		k := kindOf(l.dir)
		for _, row := range rows {
			a.Things = append(a.Things, &Thing{Kind: k, ID: idOf(row, "id"), Name: nameOf(k, row)})
		}
	}
	var endpoint struct{ URL *string }
	if err := s.ask(ctx, "GET", "/user/webhook-endpoint", nil, &endpoint); err != nil {
		return nil, err
	}
	account := &Thing{Kind: kindOf(accountDir), Path: accountFile, Name: "account"}
	account.Body = treeOf(&accountFields{endpoint.URL}, account.Kind.typ)
	a.Things = append(a.Things, account)
	a.linkRows(all[trunkDir])
	a.nameFiles(before)
	for _, dir := range []string{folderDir, labelDir, toolDir, trunkDir, assistantDir, campaignDir, alertDir, filterDir} {
		for _, row := range all[dir] {
			t := a.byID(dir, idOf(row, "id"))
			if err := s.fill(a, t, row); err != nil {
				return nil, err
			}
		}
	}
	if err := s.readNumbers(ctx, a, all[numberDir]); err != nil {
		return nil, err
	}
	for _, t := range a.of(assistantDir) {
		if err := errors.Join(s.readTests(ctx, a, t, before), s.readDraft(ctx, a, t)); err != nil {
			return nil, err
		}
	}
	for _, row := range all[knowledgeDir] {
		if err := s.readKnowledge(ctx, a, a.byID(knowledgeDir, idOf(row, "id")), row); err != nil {
			return nil, err
		}
	}
	a.sort()
	a.conceal()
	return a, nil
}

func idOf(row map[string]any, name string) int64 {
	n, _ := row[name].(json.Number)
	id, _ := n.Int64()
	return id
}

// nameOf is the name of a thing.
func nameOf(k *Kind, row map[string]any) string {
	field := "name"
	if k.Dir == numberDir {
		field = "phone_number"
	}
	name, _ := row[field].(string)
	if k.Dir == filterDir {
		page, _ := row["page"].(string)
		name = page + ": " + name
	}
	if number, ok := row["phone_number"].(string); ok && k.Dir == trunkDir && name == "" {
		name = number
	}
	return name
}

// nameFiles gives each thing a file: that of its name in before, or one of its own. Things of one name follow in the order in
// which they were made, others of the same file in that of their names, so that every server names them alike.
func (a *Account) nameFiles(before *Account) {
	slices.SortStableFunc(a.Things, func(x, y *Thing) int { return strings.Compare(x.Name, y.Name) })
	numbers, others := a.of(numberDir), slices.DeleteFunc(slices.Clone(a.Things), func(t *Thing) bool { return t.Kind.Dir == numberDir })
	taken := before.keepFiles(others)
	for _, t := range others {
		if t.Path == "" {
			t.Path = free(t.Kind.Dir+"/"+slug(t.Name), taken) + fileExtension
		}
	}
	slices.SortStableFunc(numbers, func(x, y *Thing) int { // extensions of one name follow in the order of their trunks' files
		return cmp.Or(strings.Compare(x.Name, y.Name), comparePaths(x.trunkFile(), y.trunkFile()))
	})
	taken = before.keepFiles(numbers)
	for _, t := range numbers {
		if t.Path == "" {
			t.Path = strings.TrimSuffix(numberPath(t.Name), fileExtension)
			t.Path = free(t.Path, taken) + fileExtension
		}
	}
}

// keepFiles gives things the files that the account has for things of their names, and returns what is taken then.
func (a *Account) keepFiles(things []*Thing) map[string]bool {
	taken := map[string]bool{}
	if a == nil {
		return taken
	}
	used := map[*Thing]bool{}
	for _, t := range things {
		for _, old := range a.Things {
			if !used[old] && old.Kind == t.Kind && old.Name == t.Name && t.Path == "" &&
				(t.Of == nil || t.Kind.Dir == numberDir && strings.HasPrefix(t.Name, "+") || old.Of != nil && old.Of.Path == t.Of.Path) {
				t.Path, used[old] = old.Path, true
				taken[strings.TrimSuffix(t.Path, fileExtension)] = true
			}
		}
	}
	return taken
}

// numberRune is a rune of a telephone number as files are called.
func numberRune(c rune) rune {
	if c == '+' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
		return c
	}
	return '-'
}

func (a *Account) byID(dir string, id int64) *Thing {
	for _, t := range a.Things {
		if t.Kind.Dir == dir && t.ID == id {
			return t
		}
	}
	return nil
}

// fill makes the body of a thing of what the API says of it.
func (s *Server) fill(a *Account, t *Thing, row map[string]any) error {
	if row["secret_set"] == true {
		row[trunkPassword] = unread
	}
	if list, ok := row["tools"].([]any); ok && t.Kind.isAssistant() {
		row["tools"] = slices.DeleteFunc(slices.Clone(list), func(v any) bool {
			one, _ := v.(map[string]any)
			return one["type"] == parley.MidCall // tool_ids has them too
		})
	}
	if t.Kind.Dir == filterDir {
		t.Body = filterBody(row)
		s.nameRefs(a, t)
		return nil
	}
	v := reflect.New(t.Kind.typ)
	raw, err := json.Marshal(row)
	if err == nil {
		err = json.Unmarshal(raw, v.Interface())
	}
	if err != nil {
		return fmt.Errorf("the server tells of the %s %q what this program can't read: %w", t.Kind.Word, t.Name, err)
	}
	for name := range row {
		if !knownToAPI(t.Kind.typ, name) {
			a.warnOnce("the server tells of a field %s of each %s, which this program doesn't know: use the parley of the server's version",
				name, t.Kind.Word)
		}
	}
	oneSchema(v.Interface())
	t.Body = treeOf(v.Interface(), t.Kind.typ)
	s.nameRefs(a, t)
	return nil
}

// oneSchema leaves a tool, or an assistant, the form of its schema that counts: the API shows both.
func oneSchema(thing any) {
	switch t := thing.(type) {
	case *parley.Tool:
		if t.JSONSchema = schema.ToolForms.More(schema.Both[parley.ToolParam]{Short: t.Schema, Own: t.JSONSchema}); t.JSONSchema != nil {
			t.Schema = []parley.ToolParam{}
		}
	case *parley.Assistant:
		both := schema.Both[parley.ExtractedItem]{Short: t.PostCallSchema, Own: t.PostCallJSONSchema}
		if t.PostCallJSONSchema = schema.ItemForms.More(both); t.PostCallJSONSchema != nil {
			t.PostCallSchema = []parley.ExtractedItem{}
		}
	}
}

// filterBody is a saved filter with its parameters one by one; ids among them are numbers.
func filterBody(row map[string]any) map[string]any {
	text, _ := row["query"].(string)
	query, _ := url.ParseQuery(text) // what can't be read means nothing to the server either
	filter := map[string]any{}
	for name := range query {
		filter[name] = query.Get(name)
		if n, err := strconv.ParseInt(query.Get(name), 10, 64); err == nil && strings.HasSuffix(name, "_id") {
			filter[name] = number(n)
		}
	}
	return map[string]any{"page": row["page"], "name": row["name"], "filter": filter}
}

func (a *Account) warnOnce(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(a.Warnings, text) {
		a.Warnings = append(a.Warnings, text)
	}
}

func knownToAPI(t reflect.Type, name string) bool {
	return slices.ContainsFunc(fieldsOf(t), func(f field) bool { return f.name == name })
}

// nameRefs puts names in place of ids.
func (s *Server) nameRefs(a *Account, t *Thing) {
	t.Kind.name(t.Body, func(f ref, id int64) any {
		if kindOf(f.of) == nil {
			text := s.text(f.of, id)
			if _, unknown := text.(json.Number); unknown {
				a.warnOnce("the server does not list %s %d, which %s has: the file has its number", f.of, id, t.Path)
			}
			return text
		}
		if other := a.byID(f.of, id); other != nil {
			return refText(other, a.of(f.of))
		}
		a.warnOnce("%s names %s %d, which is not there: the file has its number", t.Path, kindOf(f.of).Word, id)
		return number(id)
	})
}

// name puts what ids stand for in their place.
func (k *Kind) name(body map[string]any, text func(f ref, id int64) any) {
	for _, f := range k.refs {
		name := func(v any) any {
			n, ok := v.(json.Number)
			if !ok {
				return nil
			}
			id, _ := n.Int64()
			return text(f, id)
		}
		for _, at := range places(body, f.in) {
			v, there := at[f.id]
			delete(at, f.id)
			switch v := v.(type) {
			case []any:
				out := make([]any, len(v))
				for i := range v {
					out[i] = name(v[i])
				}
				if f.set {
					sortTexts(out)
				}
				at[f.name] = out
			default:
				if there && (f.in == "" || v != nil) {
					at[f.name] = name(v)
				}
			}
		}
	}
}

// rows reads a bare list.
func (s *Server) rows(ctx context.Context, path string) (rows []map[string]any, err error) {
	return rows, s.ask(ctx, "GET", path, nil, &rows)
}

// data reads a list under data.
func (s *Server) data(ctx context.Context, path string) ([]map[string]any, error) {
	var list struct{ Data []map[string]any }
	return list.Data, s.list(ctx, path, &list)
}

func (s *Server) list(ctx context.Context, path string, out any) error {
	return s.ask(ctx, "GET", path, nil, out)
}

// pages reads a list page by page.
func (s *Server) pages(ctx context.Context, path string) (rows []map[string]any, err error) {
	for n := 1; ; n++ {
		var page struct {
			Data     []map[string]any
			LastPage int `json:"last_page"`
		}
		if err := s.ask(ctx, "GET", path+"&page="+strconv.Itoa(n), nil, &page); err != nil {
			return nil, err
		}
		rows = append(rows, page.Data...)
		if n >= page.LastPage {
			return rows, nil
		}
	}
}

func (s *Server) readNumbers(ctx context.Context, a *Account, rows []map[string]any) error {
	for _, row := range rows {
		t := a.byID(numberDir, idOf(row, "id"))
		var route struct{ Data map[string]any }
		if err := s.ask(ctx, "GET", fmt.Sprintf("/user/phone-numbers/routes/%d", t.ID), nil, &route); err != nil {
			return err
		}
		one := &numberFields{PhoneNumber: t.Name}
		if t.Of != nil {
			one.TrunkID = &t.Of.ID
		}
		if text, ok := row["nickname"].(string); ok {
			one.Nickname = &text
		}
		if route.Data != nil {
			one.Route = parley.NewRoute("")
			raw, err := json.Marshal(route.Data)
			if err == nil {
				err = json.Unmarshal(raw, one.Route)
			}
			if err != nil {
				return fmt.Errorf("the server tells of the route of %s what this program can't read: %w", t.Name, err)
			}
		}
		t.Body = treeOf(one, t.Kind.typ)
		s.nameRefs(a, t)
	}
	return nil
}

func (s *Server) readTests(ctx context.Context, a *Account, of *Thing, before *Account) error {
	rows, err := s.data(ctx, fmt.Sprintf("/user/assistants/%d/tests", of.ID))
	if err != nil {
		return err
	}
	k := kindOf(testDir)
	slices.SortFunc(rows, func(x, y map[string]any) int { return int(idOf(x, "id") - idOf(y, "id")) })
	slices.SortStableFunc(rows, func(x, y map[string]any) int { return strings.Compare(nameOf(k, x), nameOf(k, y)) })
	var tests []*Thing
	for _, row := range rows {
		script, _ := row["script"].(string)
		tests = append(tests, &Thing{Kind: k, ID: idOf(row, "id"), Name: nameOf(k, row), Of: of, Script: strings.TrimSpace(script)})
	}
	taken := before.keepFiles(tests)
	for _, t := range tests {
		if t.Path == "" {
			t.Path = free(testDir+"/"+strings.TrimSuffix(fileOf(of), fileExtension)+"/"+slug(t.Name), taken) + fileExtension
		}
	}
	a.Things = append(a.Things, tests...)
	return nil
}

// document is one of a knowledgebase as the API tells of it.
type document struct {
	ID int64 `json:"id"`
	documentFields
	Size *int64 `json:"size"`
}

func (s *Server) readKnowledge(ctx context.Context, a *Account, t *Thing, row map[string]any) error {
	one := &knowledgeFields{Name: t.Name, Documents: []documentFields{}}
	if text, ok := row["description"].(string); ok {
		one.Description = &text
	}
	var list struct{ Data []document }
	at := fmt.Sprintf("/user/knowledgebases/%d/documents", t.ID)
	if err := s.list(ctx, at, &list); err != nil {
		return err
	}
	slices.SortFunc(list.Data, func(x, y document) int { return int(x.ID - y.ID) })
	t.Files = map[string][]byte{}
	taken, folder := map[string]bool{}, strings.TrimSuffix(t.Path, fileExtension)+"/"
	for _, d := range list.Data {
		switch d.Type {
		case parley.Website:
		case parley.PDF, parley.TXT, parley.DOCX:
			stem := slug(strings.TrimSuffix(d.Name, "."+string(d.Type)))
			d.File = free(folder+stem, taken) + "." + string(d.Type)
			raw, err := s.content(ctx, at+"/"+strconv.FormatInt(d.ID, 10)+"/content")
			if refusal, ok := errors.AsType[*Refusal](err); ok && refusal.Status == http.StatusNotFound {
				a.Warnings = append(a.Warnings,
					fmt.Sprintf("the server does not give the file of the document %q of %s: it is not written", d.Name, t.Path))
				continue
			} else if err != nil {
				return err
			}
			t.Files[d.File] = raw
			d.File = strings.TrimPrefix(d.File, t.Kind.Dir+"/")
		default: // it would be a part of the file's name
			a.Warnings = append(a.Warnings,
				fmt.Sprintf("the document %q of %s is of a type that this program doesn't know: it is not written", d.Name, t.Path))
			continue
		}
		if d.Links == nil {
			d.Links = []string{}
		}
		one.Documents = append(one.Documents, d.documentFields)
		t.docs = append(t.docs, d.ID)
	}
	t.Body = treeOf(one, t.Kind.typ)
	return nil
}
