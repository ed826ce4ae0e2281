package manifest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"parley/internal/parley"
)

// unread stands for a password that the server has, which nobody can read.
const unread = "\x00unread"

// trunkPassword is the field that is written and never read back.
const trunkPassword = "sip_password"

// numbersOf are the numbers that a trunk has, its own first.
func numbersOf(trunk map[string]any) []string {
	var t parley.Trunk
	t.PhoneNumber, _ = trunk["phone_number"].(string)
	list, _ := trunk["numbers"].([]any)
	for _, v := range list {
		text, _ := v.(string)
		t.Numbers = append(t.Numbers, text)
	}
	return append([]string{t.PhoneNumber}, t.Further()...)
}

// trunkFile is the file of a number's trunk, "" for none.
func (t *Thing) trunkFile() string {
	if t.Of == nil {
		return ""
	}
	return t.Of.Path
}

// linkRows tells the server's numbers which trunks have them.
func (a *Account) linkRows(trunks []map[string]any) {
	of, own := map[string]*Thing{}, map[int64]*Thing{}
	for _, row := range trunks {
		t := a.byID(trunkDir, idOf(row, "id"))
		own[idOf(row, "phone_number_id")] = t
		for _, number := range numbersOf(row)[1:] {
			of[number] = t
		}
	}
	for _, t := range a.of(numberDir) {
		if t.Of = own[t.ID]; t.Of == nil {
			t.Of = of[t.Name]
		}
	}
}

// numberPath is how a number is called that comes with a trunk and has no file.
func numberPath(number string) string {
	return numberDir + "/" + strings.Map(numberRune, number) + fileExtension
}

// linkNumbers tells the numbers of files which trunks have them.
func (a *Account) linkNumbers() {
	for _, t := range a.of(numberDir) {
		if name, ok := t.Body["trunk"].(string); ok {
			t.Of = find(name, a.of(trunkDir))
		}
	}
}

// checkNumber says what is wrong with whom a number comes from.
func (p *Plan) checkNumber(t, now *Thing) *Mistake {
	switch {
	case t.Of != nil && !slices.Contains(numbersOf(t.Of.Body), t.Name):
		return &Mistake{t.Path, t.line("trunk"),
			fmt.Sprintf("%s does not have this number: add it to its numbers, or leave the line out", t.Of.Path)}
	case now == nil && !p.coming[t.Name]:
		return &Mistake{t.Path, t.line("phone_number"),
			"the account has no number " + t.Name + ": rent it, or list it in the file of a trunk, and push again; or delete this file"}
	}
	return nil
}

// matchTrunks finds the server's trunks of files whose names it doesn't have by their numbers.
func (p *Plan) matchTrunks() {
	used := map[*Thing]bool{}
	for _, now := range p.matched {
		used[now] = true
	}
	for _, t := range p.files.of(trunkDir) {
		for _, now := range p.now.of(trunkDir) {
			if p.matched[t] == nil && !used[now] && now.Body["phone_number"] == t.Body["phone_number"] {
				p.matched[t], used[now] = now, true
			}
		}
	}
}

// ofTrunk says whether the server's number is that of a file: of extensions, several trunks may have the same.
func (p *Plan) ofTrunk(t, now *Thing) bool {
	return t.Kind.Dir != numberDir || t.Of == nil || strings.HasPrefix(t.Name, "+") || now.Of != nil && now.Of == p.matched[t.Of]
}

// renumber reads the ids of a trunk's numbers after it was made or changed.
func (a *applier) renumber(ctx context.Context, trunk *Thing, own int64) error {
	rows, err := a.data(ctx, "/user/phone-numbers/all")
	if err != nil {
		return err
	}
	numbers := numbersOf(trunk.Body)
	for _, row := range rows {
		id, name := idOf(row, "id"), nameOf(kindOf(numberDir), row)
		if !slices.Contains(numbers, name) || !strings.HasPrefix(name, "+") && id != own {
			continue
		}
		if _, there := a.made[numberPath(name)]; !there { // the file of another trunk's extension may be called so
			a.made[numberPath(name)] = id
		}
		for _, t := range a.p.files.of(numberDir) {
			if t.Name != name || t.Of != nil && t.Of != trunk {
				continue
			}
			a.made[t.Path] = id
			if now := a.p.matched[t]; now != nil {
				now.ID = id
			}
		}
	}
	return nil
}

// madeNumber is the change of a number that has come with its trunk.
func (a *applier) madeNumber(c *Change) (*Change, error) {
	id := a.made[c.Thing.Path]
	if id == 0 {
		return nil, fmt.Errorf("the number %s has not come with its trunk", c.Thing.Name)
	}
	made := *c
	made.Now, made.Fields = &Thing{Kind: c.Thing.Kind, ID: id}, nil
	for _, name := range []string{"nickname", "route"} {
		if c.body[name] != nil {
			made.Fields = append(made.Fields, FieldChange{Name: name})
		}
	}
	return &made, nil
}
