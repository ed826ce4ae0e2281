package manifest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"parley/internal/manifest"
	"parley/internal/parley"
)

const office = "name: Office\nphone_number: \"+4930901820\"\nsip_address: sip.example.com\nsip_username: alice\nregister: true\n"

// only is the account's one trunk.
func (s *server) only(t *testing.T, of *manifest.Server) (trunk parley.Trunk, password string) {
	t.Helper()
	all, err := s.db.AllTrunks(context.Background())
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	if password, err = s.db.TrunkPassword(&all[0]); err != nil {
		t.Fatal(err)
	}
	return all[0], password
}

// A trunk is pushed with its password and its numbers, which may be used by the same push. Nobody can read the password: it
// stays as it is where its variable is not set, and is written again where it is.
func TestTrunk(t *testing.T) {
	house := open(t, "gpt-4o")
	s := house.account(t)
	files := dir("trunks/office.yaml", office+"numbers: [+4930901821-+4930901822]\nsip_password: \"${SIP}\"\n"+
		"sip_headers: {X-Token: \"${TOKEN}\"}\n",
		"numbers/+4930901821.yaml", "phone_number: \"+4930901821\"\ntrunk: Office\nnickname: Sales\n",
		"assistants/desk.yaml", desk+"phone_number: \"+4930901821\"\n",
		"assistants/two.yaml", strings.Replace(desk, "Desk", "Two", 1)+"phone_number: \"+4930901822\"\n")
	if err := push(t, s, files, false, nil); err == nil ||
		!strings.Contains(err.Error(), "set the environment variable SIP: the server has no value for it") {
		t.Error(err)
	}
	env := map[string]string{"SIP": "s3cr3t", "TOKEN": "t0ken"}
	if err := push(t, s, files, false, env); err != nil {
		t.Fatal(err)
	}
	if trunk, password := house.only(t, s); password != "s3cr3t" || trunk.SIPHeaders["X-Token"] != "t0ken" {
		t.Errorf("the password is %q, headers %v", password, trunk.SIPHeaders)
	}
	_, there := pull(t, s)
	all := text(there)
	says(t, all, "nickname: Sales\n", "trunk: Office\n", "phone_number: \"+4930901822\"\n", "sip_password: \"${TRUNK_OFFICE_SIP_PASSWORD}\"\n",
		"X-Token: \"${TRUNK_OFFICE_X_TOKEN}\"\n")
	if strings.Contains(all, "s3cr3t") || strings.Contains(all, "t0ken") {
		t.Errorf("a secret is in it:\n%s", all)
	}
	if got := shown(t, s, files, true); !strings.HasPrefix(got, "No changes") {
		t.Error(got)
	}
	plan, err := planned(t, s, files, false, map[string]string{"SIP": "0ther"})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if plan.Write(&b); strings.Contains(b.String(), "0ther") {
		t.Errorf("the plan tells the password:\n%s", &b)
	}
	says(t, b.String(), "sip_password: it is written again")
	if err := s.Apply(t.Context(), plan, func(*manifest.Change) {}); err != nil {
		t.Fatal(err)
	}
	if _, password := house.only(t, s); password != "0ther" {
		t.Errorf("the password is %q", password)
	}
	// a trunk of another name with the number is the same one
	files["trunks/office.yaml"].Data = []byte(strings.Replace(string(files["trunks/office.yaml"].Data), "Office", "House", 1))
	files["numbers/+4930901821.yaml"].Data = []byte("phone_number: \"+4930901821\"\ntrunk: House\nnickname: Sales\n")
	says(t, shown(t, s, files, true), "~ trunks/office.yaml\n    name: \"Office\" → \"House\"\n0 to create, 1 to change, 0 to delete.")
	if err := push(t, s, files, true, nil); err != nil {
		t.Fatal(err)
	}
	if trunk, password := house.only(t, s); trunk.Name != "House" || password != "0ther" {
		t.Error(trunk.Name, password)
	}
	// a preset that comes later fills in nothing: the file says everything
	files["trunks/office.yaml"].Data = append(files["trunks/office.yaml"].Data, "preset: sipgate\n"...)
	if err := push(t, s, files, false, nil); err != nil {
		t.Fatal(err)
	}
	if trunk, password := house.only(t, s); *trunk.Preset != "sipgate" || trunk.Privacy != "anonymous" || password != "0ther" {
		t.Error(*trunk.Preset, trunk.Privacy, password)
	}
	if got := shown(t, s, files, true); !strings.HasPrefix(got, "No changes") {
		t.Error(got)
	}
}

// A number goes from one trunk to another with its settings, and a trunk that has no file is deleted only where others have
// one.
func TestTrunkNumbers(t *testing.T) {
	s := open(t, "gpt-4o").account(t)
	trunk := func(name, number, more string) string {
		return fmt.Sprintf("name: %s\nphone_number: %q\nsip_address: sip.example.com\ninbound_authorization_type: ip\n"+
			"allowed_inbound_ips: [192.0.2.1]\nnumbers: [%s]\n", name, number, more)
	}
	number := func(trunk string) string {
		return "phone_number: \"+4930901825\"\ntrunk: " + trunk + "\nnickname: Moves\n"
	}
	files := dir("trunks/a.yaml", trunk("A", "+4930901820", "+4930901825"), "trunks/b.yaml", trunk("B", "+4930901830", ""),
		"numbers/+4930901825.yaml", number("A"),
		"assistants/desk.yaml", desk+"phone_number: \"+4930901825\"\n", "trunks/c.yaml", trunk("C", "101", "")+"sip_trunk_type: extension\n",
		"trunks/d.yaml", trunk("D", "101", "")+"sip_trunk_type: extension\n", "numbers/101.yaml",
		"phone_number: \"101\"\ntrunk: D\nnickname: Of D\n", "numbers/101-2.yaml", "phone_number: \"101\"\ntrunk: C\nnickname: Of C\n")
	for _, to := range []string{"A", "B"} {
		files["trunks/a.yaml"].Data, files["trunks/b.yaml"].Data = []byte(trunk("A", "+4930901820", map[string]string{"A": "+4930901825"}[to])),
			[]byte(trunk("B", "+4930901830", map[string]string{"B": "+4930901825"}[to]))
		files["numbers/+4930901825.yaml"].Data = []byte(number(to))
		for range 2 { // what went with the number is there after another push
			if err := push(t, s, files, true, nil); err != nil {
				t.Fatal(to, err)
			}
		}
		if got := shown(t, s, files, true); !strings.HasPrefix(got, "No changes") {
			t.Error(to, got)
		}
	}
	_, now := pull(t, s)
	says(t, text(now), "numbers/101.yaml\nphone_number: \"101\"\ntrunk: C\nnickname: Of C\n",
		"numbers/101-2.yaml\nphone_number: \"101\"\ntrunk: D\nnickname: Of D\n")
	files["numbers/+4930901825.yaml"].Data = []byte(number("A"))
	says(t, shown(t, s, files, true), "numbers/+4930901825.yaml:2: trunks/a.yaml does not have this number")
	only := dir("assistants/desk.yaml", desk+"phone_number: \"+4930901825\"\n")
	says(t, shown(t, s, only, true), "trunk \"A\" is only on the server: it stays")
	only["trunks/b.yaml"] = files["trunks/b.yaml"]
	says(t, shown(t, s, only, true), "- trunk \"A\"\n", "- trunk \"D\"\n")
	if err := push(t, s, only, true, nil); err != nil {
		t.Fatal(err)
	}
	if got := shown(t, s, only, true); !strings.Contains(got, "No changes") {
		t.Error(got)
	}
}

// A draft's file has the fields that it changes: others are as they are live, and those that go back are in it no more.
func TestDraft(t *testing.T) {
	house := open(t, "gpt-4o")
	s := house.account(t)
	r := newRandom(t, house, s, nil, "")
	live := desk + "record: true\nvariables: {api_key: \"${KEY}\", city: Rome}\nmax_duration: 60\n"
	files := dir("assistants/desk.yaml", live, "drafts/desk.yaml",
		"record: false\nmax_duration: 600\nvariables: {api_key: \"${KEY}\", city: Oslo}\nphone_number: null\n")
	env := map[string]string{"KEY": "s3cr3t"}
	if err := push(t, s, files, false, env); err != nil {
		t.Fatal(err)
	}
	_, now := pull(t, s)
	if got := string(now["drafts/desk.yaml"].Data); got != "variables:\n  api_key: \"${ASSISTANT_DESK_API_KEY}\"\n  city: Oslo\n"+
		"record: false\nmax_duration: 600\n" {
		t.Error(got)
	}
	if got := string(now["assistants/desk.yaml"].Data); !strings.Contains(got, "max_duration: 60\n") {
		t.Error(got)
	}
	if got := shown(t, s, files, true); !strings.HasPrefix(got, "No changes") {
		t.Error(got)
	}
	files["drafts/desk.yaml"].Data = []byte("max_duration: 90\nsystem_prompt: Be brief.\n")
	says(t, shown(t, s, files, true), "~ drafts/desk.yaml\n    variables:",
		"→ \"as live\"\n    system_prompt: \"as live\" → \"Be brief.\"\n    record: false → \"as live\"\n    max_duration: 600 → 90\n")
	if err := push(t, s, files, true, nil); err != nil {
		t.Fatal(err)
	}
	if _, now = pull(t, s); string(now["drafts/desk.yaml"].Data) != "system_prompt: Be brief.\nmax_duration: 90\n" {
		t.Error(text(now))
	}
	delete(files, "drafts/desk.yaml") // files without any draft delete none
	says(t, shown(t, s, files, true), "draft \"Desk\" is only on the server: it stays")
	files["assistants/two.yaml"] = dir("a", strings.Replace(desk, "Desk", "Two", 1))["a"]
	files["drafts/two.yaml"] = dir("a", "record: true\n")["a"]
	says(t, shown(t, s, files, true), "- draft \"Desk\"\n", "+ drafts/two.yaml\n")
	if err := push(t, s, files, true, nil); err != nil {
		t.Fatal(err)
	}
	if got := shown(t, s, files, true); !strings.HasPrefix(got, "No changes") {
		t.Error(got)
	}
	files["drafts/nobody.yaml"] = dir("a", "record: true\n")["a"]
	files["drafts/two.yaml"] = dir("a", "folder: Shops\nrecord: true\n")["a"]
	says(t, shown(t, s, files, true), "drafts/nobody.yaml: there is no file assistants/nobody.yaml",
		"drafts/two.yaml:1: there is no field folder")

	// a voice that doesn't go with the language has no name
	var id int64
	for _, v := range house.cat.Voices("pipeline", 0) {
		if v.LanguageID != 1 {
			id = v.ID
		}
	}
	account, err := s.Read(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range account.Things {
		if a.Kind.Dir == "assistants" && a.Name == "Two" {
			r.do("PUT", fmt.Sprintf("/user/assistants/%d/draft", a.ID), object{"voice_id": id})
		}
	}
	account, err = s.Read(t.Context(), nil)
	if err != nil || len(account.Warnings) != 1 ||
		!strings.Contains(account.Warnings[0], "the draft of assistants/two.yaml has a voice that does not go with") {
		t.Error(err, account.Warnings)
	}
	if got := string(account.Files(nil)["drafts/two.yaml"]); got != "record: true\n" {
		t.Error(got)
	}
}
