package campaign

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"parley/internal/parley"
	"parley/internal/sheet"
)

const (
	exportRows    = 1000 // read at a time
	exportColumns = 100  // variables that get a column of their own; further ones are left to the API
)

// Export writes a campaign's leads as CSV, with what became of them: as far as they are now, in the order of their
// ids. The campaign is looked for before anything is written.
func (d *Roster) Export(ctx context.Context, userID, id int64, w func(filename string) io.Writer) error {
	c, err := d.DB.Campaign(ctx, userID, id)
	if err != nil {
		return err
	}
	variables, found, err := d.columns(ctx, c)
	if err != nil {
		return err
	}
	out := csv.NewWriter(w("campaign-" + strconv.FormatInt(id, 10) + ".csv"))
	head := []string{phoneColumn, "lead_id", "lead_status", "attempts", "next_attempt_at", "last_call_id",
		"outcome", "answered_by", "total_cost", "sentiment",
		"evaluation", "score"}
	for _, name := range variables {
		head = append(head, sheet.Plain(name))
	}
	for _, name := range found {
		head = append(head, sheet.Plain("extracted_"+name))
	}
	out.Write(head) // failures show at the end
	err = d.everyLead(ctx, c, func(l *parley.Lead) {
		row := []string{l.PhoneNumber, strconv.FormatInt(l.ID, 10), string(l.Status), strconv.Itoa(l.Attempts),
			datetime(l.NextAttemptAt), value(l.LastCallID),
			value(l.Outcome), value(l.AnsweredBy), l.TotalCost.String(), value(l.Evaluation["sentiment"]),
			value(l.Evaluation["outcome"]), value(l.Evaluation["score"])}
		for _, name := range variables {
			row = append(row, sheet.Plain(l.Variables[name]))
		}
		for _, name := range found {
			row = append(row, value(l.Extracted[name]))
		}
		out.Write(row)
	})
	if out.Flush(); err != nil {
		return err
	}
	return out.Error()
}

// Sample writes a list to begin with: a column for each variable that the assistant of a campaign uses, and a row with
// its own values. The number is one that nobody has.
func (d *Roster) Sample(ctx context.Context, userID, id int64, w func(filename string) io.Writer) error {
	c, err := d.DB.Campaign(ctx, userID, id)
	if err != nil {
		return err
	}
	a, err := d.DB.Assistant(ctx, userID, c.AssistantID)
	if err != nil {
		return err
	}
	head, row := []string{phoneColumn}, []string{"+12025550123"}
	for _, name := range parley.VariableNames(a.Texts()...) {
		if !slices.Contains(parley.BuiltinVariables, name) {
			head, row = append(head, sheet.Plain(name)), append(row, sheet.Plain(a.Variables[name]))
		}
	}
	out := csv.NewWriter(w("example-" + strconv.FormatInt(id, 10) + ".csv"))
	return out.WriteAll([][]string{head, row})
}

// columns are the names of the leads' variables, and of what was found out from their calls.
func (d *Roster) columns(ctx context.Context, c *parley.Campaign) (variables, found []string, err error) {
	input, output := map[string]bool{}, map[string]bool{}
	err = d.everyLead(ctx, c, func(l *parley.Lead) {
		for name := range l.Variables {
			if len(input) < exportColumns {
				input[name] = true
			}
		}
		for name := range l.Extracted {
			if len(output) < exportColumns {
				output[name] = true
			}
		}
	})
	return slices.Sorted(maps.Keys(input)), slices.Sorted(maps.Keys(output)), err
}

func (d *Roster) everyLead(ctx context.Context, c *parley.Campaign, fn func(*parley.Lead)) error {
	for after := int64(0); ; {
		list, err := d.DB.LeadsAfter(ctx, c.UserID, c.ID, after, exportRows)
		if err != nil || len(list) == 0 {
			return err
		}
		for i := range list {
			fn(&list[i])
			after = list[i].ID
		}
	}
}

// value is a value as a cell shows it; nothing where there is none.
func value(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return sheet.Plain(v)
	case *int64:
		if v == nil {
			return ""
		}
		return strconv.FormatInt(*v, 10)
	case *parley.Outcome:
		if v == nil {
			return ""
		}
		return string(*v)
	case *parley.AnsweredBy:
		if v == nil {
			return ""
		}
		return string(*v)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	if n, ok := v.(json.Number); ok {
		return string(n)
	}
	if _, ok := v.(float64); ok {
		return string(b)
	}
	return sheet.Plain(strings.Trim(string(b), `"`))
}

func datetime(t parley.DateTime) string {
	if t == 0 {
		return ""
	}
	return value(t)
}
