// Package preset is what is known of carriers and telephone systems: how a trunk to each is set up here and there, from one
// file. docs/carriers is made from it (go generate).
package preset

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"parley/internal/form"
	"parley/internal/parley"
)

//go:generate go test . -count=1 -run TestPages -update

// Preset is what is known of one carrier or telephone system.
type Preset struct {
	ID        string    `yaml:"id" json:"id" doc:"As preset of a trunk names it."`
	Name      string    `yaml:"name" json:"name"`
	Kind      string    `yaml:"kind" json:"kind" enum:"carrier,system"`
	Settings  Settings  `yaml:"settings" json:"settings" doc:"What the preset fills in: fields of a trunk."`
	Needs     []string  `yaml:"needs" json:"needs" doc:"Fields of a trunk that must be filled in by hand."`
	There     []string  `yaml:"there" json:"there" doc:"What to set up at the carrier, or in the telephone system. [1] names a source."`
	Sample    string    `yaml:"sample" json:"sample,omitempty" doc:"A whole configuration of the telephone system."`
	Here      []string  `yaml:"here" json:"here" doc:"What to enter here. Fields of a trunk stand in backquotes, some with their value."`
	Ports     []string  `yaml:"ports" json:"ports" doc:"Ports, addresses and rates."`
	Refusals  []Refusal `yaml:"refusals" json:"refusals" doc:"What the usual refusals mean."`
	NotLooked []string  `yaml:"not_looked_up" json:"not_looked_up" doc:"What was not looked up."`
	Sources   []Source  `yaml:"sources" json:"sources" doc:"The documents that all of this is from."`
}

// Settings are the fields of a trunk that a preset fills in.
type Settings struct {
	SIPAddress       *string  `yaml:"sip_address" json:"sip_address,omitempty"`
	SIPTrunkType     *string  `yaml:"sip_trunk_type" json:"sip_trunk_type,omitempty"`
	CountryCode      *string  `yaml:"country_code" json:"country_code,omitempty"`
	Transport        *string  `yaml:"transport" json:"transport,omitempty"`
	SRTP             *string  `yaml:"srtp" json:"srtp,omitempty"`
	Codecs           []string `yaml:"codecs" json:"codecs,omitempty"`
	Register         *bool    `yaml:"register" json:"register,omitempty"`
	SIPCallingFormat *string  `yaml:"sip_calling_format" json:"sip_calling_format,omitempty"`
	Prefix           *string  `yaml:"prefix" json:"prefix,omitempty"`
	FromUser         *string  `yaml:"from_user" json:"from_user,omitempty"`
	UserPhone        *bool    `yaml:"user_phone" json:"user_phone,omitempty"`
	IdentityHeader   *string  `yaml:"identity_header" json:"identity_header,omitempty"`
	Privacy          *string  `yaml:"privacy" json:"privacy,omitempty"`
	CalledNumberFrom []string `yaml:"called_number_from" json:"called_number_from,omitempty"`
	InboundHosts     []string `yaml:"inbound_hosts" json:"inbound_hosts,omitempty"`
	InboundBy        *string  `yaml:"inbound_authorization_type" json:"inbound_authorization_type,omitempty"`
	Options          *bool    `yaml:"options" json:"options,omitempty"`
}

// Refusal is an answer, and what it means at one carrier or system.
type Refusal struct {
	Answer string `yaml:"answer" json:"answer" doc:"A SIP status, or what is seen."`
	Means  string `yaml:"means" json:"means"`
}

// Source is a document that facts are from.
type Source struct {
	Title string `yaml:"title" json:"title"`
	URL   string `yaml:"url" json:"url"`
	Read  string `yaml:"read" json:"read" format:"date" doc:"When it was read."`
}

//go:embed presets.yaml
var file []byte

var all = read(file)

// read reads the file, which tests have read before.
func read(file []byte) (list []Preset) {
	dec := yaml.NewDecoder(bytes.NewReader(file))
	dec.KnownFields(true)
	if err := dec.Decode(&list); err != nil {
		panic(fmt.Sprintf("preset: presets.yaml: %v", err))
	}
	for i := range list {
		p := &list[i]
		for _, l := range []*[]string{&p.Needs, &p.There, &p.Here, &p.Ports, &p.NotLooked} {
			*l = append([]string{}, *l...) // shown empty rather than null
		}
		p.Refusals, p.Sources = append([]Refusal{}, p.Refusals...), append([]Source{}, p.Sources...)
	}
	return list
}

// All are all presets: carriers first. They must not be changed.
func All() []Preset { return all }

// Of is the preset with that id, nil for none.
func Of(id string) *Preset {
	for i := range all {
		if all[i].ID == id {
			return &all[i]
		}
	}
	return nil
}

// of is the preset that a trunk names, nil for none.
func of(t *parley.Trunk) *Preset {
	if t.Preset == nil {
		return nil
	}
	return Of(*t.Preset)
}

// tree is a value as decoded JSON.
func tree(v any) (m map[string]any) {
	raw, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(raw, &m)
	}
	if err != nil {
		panic(fmt.Sprintf("preset: %T is not a JSON object: %v", v, err)) // our own types
	}
	return m
}

// usual are a trunk's fields as they are by default.
var usual = func() map[string]any {
	var t parley.Trunk
	form.Defaults(&t)
	return tree(t)
}()

// Fill is what was sent of a trunk, with the settings of the preset that it names where that is another than the trunk
// has. What a user says goes first, now or before: only fields that have their default, or what the former preset has
// filled in, are filled. Nothing is filled in that would need more than was said: a registration without a password, callers
// from addresses without any.
func Fill(sent map[string]any, t *parley.Trunk) map[string]any {
	out := Offer(sent, t)
	if _, said := sent["register"]; !said && out["register"] == true && !mayRegister(out, t) {
		delete(out, "register")
	}
	if _, said := sent["inbound_authorization_type"]; !said && out["inbound_authorization_type"] == "ip" && !hasAddresses(out, t) {
		delete(out, "inbound_authorization_type")
	}
	return out
}

// hasAddresses reports whether a trunk has addresses that may call in.
func hasAddresses(sent map[string]any, t *parley.Trunk) bool {
	for name, now := range map[string]int{"allowed_inbound_ips": len(t.AllowedInboundIPs), "inbound_hosts": len(t.InboundHosts)} {
		list, said := sent[name].([]any)
		if len(list) > 0 || !said && now > 0 {
			return true
		}
	}
	return false
}

// Offer is Fill for a form that somebody goes on filling in: whatever is still missing, they see.
func Offer(sent map[string]any, t *parley.Trunk) map[string]any {
	id, _ := sent["preset"].(string)
	p, old := Of(strings.TrimSpace(id)), of(t)
	if p == nil || p == old {
		return sent
	}
	out, now, want, was := maps.Clone(sent), tree(t), tree(p.Settings), map[string]any{}
	if old != nil {
		was = tree(old.Settings)
	}
	for name, value := range was {
		if _, is := want[name]; !is && name != "sip_address" && reflect.DeepEqual(now[name], value) {
			want[name] = usual[name]
		}
	}
	for name, value := range want {
		_, said := sent[name]
		before, filled := was[name]
		if !said && !same(now[name], value) && (same(now[name], usual[name]) || filled && reflect.DeepEqual(now[name], before)) {
			out[name] = value
		}
	}
	return out
}

// same reports whether a field has its default; an empty list may be none.
func same(a, b any) bool {
	empty := func(v any) bool { list, is := v.([]any); return v == nil || is && len(list) == 0 }
	return reflect.DeepEqual(a, b) || empty(a) && empty(b)
}

// mayRegister reports whether a trunk has what it takes to register.
func mayRegister(sent map[string]any, t *parley.Trunk) bool {
	user, password := t.SIPUsername, len(t.Sealed) > 0
	if v, said := sent["sip_username"]; said {
		user, _ = v.(string)
	}
	if v, said := sent["sip_password"]; said {
		text, _ := v.(string)
		password = text != ""
	}
	return user != "" && password
}

// free are settings that may differ from the preset's without a word: there are others that are as good.
var free = []string{"sip_address", "country_code", "codecs", "inbound_hosts", "sip_trunk_type", "called_number_from"}

// Hints say what of a trunk is otherwise than the documents of its carrier or system have it.
func Hints(t *parley.Trunk) (list []string) {
	p := of(t)
	if p == nil {
		return nil
	}
	now, want := tree(t), tree(p.Settings)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if name == "register" && want[name] == true && t.InboundAuthorizationType == "ip" {
			continue // by addresses, as the guides have it for those who don't register
		}
		if !slices.Contains(free, name) && !reflect.DeepEqual(now[name], want[name]) {
			list = append(list, fmt.Sprintf("%s is %s, and %s is known to want %s.", name, shown(now[name]), p.Name, shown(want[name])))
		}
	}
	for _, name := range p.Needs {
		if same(now[name], nil) || now[name] == "" {
			list = append(list, fmt.Sprintf("%s is empty, and %s needs it.", name, p.Name))
		}
	}
	return list
}

func shown(v any) string {
	switch v := v.(type) {
	case nil:
		return "not set"
	case bool:
		return map[bool]string{true: "on", false: "off"}[v]
	}
	return fmt.Sprint(v)
}

// Page is where the guide of a preset is, below docs.
func (p *Preset) Page() string { return "carriers/" + p.ID + ".md" }
