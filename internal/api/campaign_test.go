package api_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley/internal/parley"
	"parley/internal/store"
)

// caller makes an outbound assistant.
func (h *harness) caller(change map[string]any) int64 {
	h.Helper()
	return h.assistant(with(map[string]any{"type": "outbound", "status": "active"}, change))
}

// number gives the user an own number.
func (h *harness) number() int64 {
	h.Helper()
	n := &parley.Number{PhoneNumber: fmt.Sprintf("+1415556%04d", serial.Add(1)), CountryCode: "US",
		Type: parley.NumberSIP}
	h.write(func(ctx context.Context, tx *store.Tx) error { return tx.CreateNumber(ctx, h.user.ID, n) })
	return n.ID
}

// campaign makes a campaign with some fields changed.
func (h *harness) campaign(change map[string]any) int64 {
	h.Helper()
	body := map[string]any{"name": "Spring"}
	if change["assistant_id"] == nil {
		body["assistant_id"] = h.caller(nil)
	}
	return id(h.post("/user/campaigns", with(body, change), status(201)).json()["data"].(map[string]any))
}

func TestCampaignLife(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.get("/user/campaigns", status(200)).is("[]")
		who, from := h.caller(nil), h.number()
		made := h.post("/user/campaign", map[string]any{"name": " Spring ", "assistant_id": who, "id": 7,
			"status": "completed", "unknown": 1}, status(201)).json()
		if made["message"] != "Campaign created successfully" {
			t.Errorf("message %v", made["message"])
		}
		c := made["data"].(map[string]any)
		stamp := c["created_at"].(string)
		if !isoTime.MatchString(stamp) || c["updated_at"] != stamp {
			t.Errorf("created_at %v updated_at %v", c["created_at"], c["updated_at"])
		}
		at := fmt.Sprintf("/user/campaigns/%d", id(c))
		got := h.get(at, status(200))
		got.is(fmt.Sprintf(`{"id":%d,"name":"Spring","status":"draft","assistant_id":%d,"timezone":"UTC","max_calls_in_parallel":3,"mark_complete_when_no_leads":true,`+
			`"allowed_hours_start_time":"00:00:00","allowed_hours_end_time":"23:59:00","allowed_days":["monday","tuesday","wednesday","thursday","friday","saturday","sunday"],`+
			`"max_retries":3,"retry_interval":60,"retry_on_voicemail":false,"retry_on_goal_incomplete":false,"goal_completion_variable":null,"phone_number_ids":[],`+
			`"paused_until":null,"pause_reason":null,"started_at":null,"completed_at":null,"created_at":"%s","updated_at":"%s"}`, id(c),
			who, stamp, stamp))
		if one := h.get(fmt.Sprintf("/user/campaign/%d", id(c)), status(200)); !bytes.Equal(one.body, got.body) {
			t.Errorf("under its other name it is %s", one.body)
		}
		if put := h.put(at, nil, raw(string(got.body)),
			status(200)).json(); put["message"] != "Campaign updated successfully" {
			t.Errorf("message %v", put["message"])
		}
		if again := h.get(at); !bytes.Equal(again.body, got.body) {
			t.Errorf("PUT of what GET returned made %s", again.body)
		}
		full := map[string]any{"name": "Autumn", "timezone": "Europe/Berlin", "max_calls_in_parallel": 10,
			"mark_complete_when_no_leads": false,
			"allowed_hours_start_time":    "09:30", "allowed_hours_end_time": "17:00",
			"allowed_days": []any{"monday", "friday"}, "max_retries": 5, "retry_interval": 4320,
			"retry_on_voicemail": true, "retry_on_goal_incomplete": true, "goal_completion_variable": "status",
			"phone_number_ids": []any{from}}
		h.put(at, full, status(200))
		now := h.get(at).json()
		want := with(full, map[string]any{"allowed_hours_start_time": "09:30:00", "allowed_hours_end_time": "17:00:00"})
		for k, v := range want {
			if fmt.Sprint(now[k]) != fmt.Sprint(v) {
				t.Errorf("%s is %v, want %v", k, now[k], v)
			}
		}
		h.put(at, nil, raw(`{"phone_number_ids":null,"allowed_days":null,"goal_completion_variable":null,"retry_on_goal_incomplete":null,"timezone":null,"max_calls_in_parallel":null}`), status(200))
		now = h.get(at).json()
		if len(now["phone_number_ids"].([]any)) != 0 || len(now["allowed_days"].([]any)) != 7 ||
			now["goal_completion_variable"] != nil || now["timezone"] != "UTC" ||
			fmt.Sprint(now["max_calls_in_parallel"]) != "3" {
			t.Errorf("after clearing: %v", now)
		}
		second := h.campaign(nil)
		if list := h.get("/user/campaigns", status(200)).list(); len(list) != 2 || id(list[0]) != second ||
			id(list[1]) != id(c) {
			t.Errorf("the list is %v", list)
		}
		h.get(at+"/stats", status(200)).
			is(`{"total":0,"by_status":{"blacklisted":0,"completed":0,"created":0,"processing":0,"reached-max-retries":0,"rescheduled":0,"scheduled":0},` +
				`"calls":0,"answered":0,"voicemail":0,"busy":0,"no_answer":0,"failed":0,"canceled":0,"cost":0}`)

		other := h.stranger()
		for _, path := range []string{at, fmt.Sprintf("/user/campaign/%d", id(c)), "/user/campaigns/0",
			"/user/campaigns/x", "/user/campaigns/99999999999999999999"} {
			for _, method := range []string{"GET", "PUT", "DELETE"} {
				other.do(method, path, nil, status(404)).is(`{"message":"Campaign not found"}`)
			}
		}
		other.get(at+"/stats", status(404)).is(`{"message":"Campaign not found"}`)
		other.get(at+"/export", status(404)).is(`{"message":"Campaign not found"}`)
		if list := other.get("/user/campaigns").list(); len(list) != 0 {
			t.Errorf("another user sees %v", list)
		}
		h.delete(at, status(200)).is(`{"message":"Campaign deleted successfully"}`)
		h.get(at, status(404))
		h.delete(at, status(404))
	})
}

func TestCampaignRules(t *testing.T) {
	h := lite(t, nil)
	who, inbound, own := h.caller(nil), h.assistant(nil), h.number()
	other := h.stranger()
	theirs, foreign := other.caller(nil), other.number()
	good := map[string]any{"name": "Spring", "assistant_id": who}
	long := strings.Repeat("é", 256)
	for _, c := range []struct {
		change map[string]any
		field  string // the failing field; "" if the value is good
		text   string
	}{
		{map[string]any{"name": nil}, "name", "The name field is required."},
		{map[string]any{"name": " "}, "name", "The name field is required."},
		{map[string]any{"name": long}, "name", "The name field must not be greater than 255 characters."},
		{map[string]any{"name": long[2:]}, "", ""},
		{map[string]any{"name": 5}, "name", "The name field must be a string."},
		{map[string]any{"assistant_id": nil}, "assistant_id", "The assistant_id field is required."},
		{map[string]any{"assistant_id": "x"}, "assistant_id", "The assistant_id field must be an integer or a UUID."},
		{map[string]any{"timezone": "Mars/Olympus"}, "timezone",
			"The timezone field must be a valid IANA time zone such as Europe/Berlin."},
		{map[string]any{"timezone": "America/New_York"}, "", ""},
		{map[string]any{"max_calls_in_parallel": 0}, "max_calls_in_parallel",
			"The max_calls_in_parallel field must be at least 1."},
		{map[string]any{"max_calls_in_parallel": 1}, "", ""},
		{map[string]any{"max_calls_in_parallel": 10}, "", ""},
		{map[string]any{"max_calls_in_parallel": 11}, "max_calls_in_parallel",
			"The max_calls_in_parallel field must not be greater than 10."},
		{map[string]any{"max_calls_in_parallel": 1.5}, "max_calls_in_parallel",
			"The max_calls_in_parallel field must be an integer."},
		{map[string]any{"allowed_hours_start_time": "9:00"}, "allowed_hours_start_time",
			"The allowed_hours_start_time field must match the format H:i."},
		{map[string]any{"allowed_hours_start_time": "24:00"}, "allowed_hours_start_time",
			"The allowed_hours_start_time field must match the format H:i."},
		{map[string]any{"allowed_hours_start_time": "09:60"}, "allowed_hours_start_time",
			"The allowed_hours_start_time field must match the format H:i."},
		{map[string]any{"allowed_hours_start_time": "23:59", "allowed_hours_end_time": "00:00"}, "", ""},
		{map[string]any{"allowed_hours_end_time": "17:00:30"}, "allowed_hours_end_time",
			"The allowed_hours_end_time field must match the format H:i."},
		{map[string]any{"allowed_hours_end_time": 17}, "allowed_hours_end_time",
			"The allowed_hours_end_time field must be a string."},
		{map[string]any{"allowed_days": []any{}}, "allowed_days", "The allowed_days field must have at least 1 item."},
		{map[string]any{"allowed_days": "monday"}, "allowed_days", "The allowed_days field must be an array."},
		{map[string]any{"allowed_days": []any{"monday", "Freitag"}}, "allowed_days.1",
			"The allowed_days.1 field must be one of: monday, tuesday, wednesday, thursday, friday, saturday, sunday."},
		{map[string]any{"max_retries": 0}, "max_retries", "The max_retries field must be at least 1."},
		{map[string]any{"max_retries": 1}, "", ""},
		{map[string]any{"max_retries": 5}, "", ""},
		{map[string]any{"max_retries": 6}, "max_retries", "The max_retries field must not be greater than 5."},
		{map[string]any{"retry_interval": 9}, "retry_interval", "The retry_interval field must be at least 10."},
		{map[string]any{"retry_interval": 10}, "", ""},
		{map[string]any{"retry_interval": 4320}, "", ""},
		{map[string]any{"retry_interval": 4321}, "retry_interval",
			"The retry_interval field must not be greater than 4320."},
		{map[string]any{"retry_on_voicemail": "yes"}, "retry_on_voicemail",
			"The retry_on_voicemail field must be true or false."},
		{map[string]any{"mark_complete_when_no_leads": 2}, "mark_complete_when_no_leads",
			"The mark_complete_when_no_leads field must be true or false."},
		{map[string]any{"retry_on_goal_incomplete": true}, "goal_completion_variable",
			"The goal_completion_variable field is required when retry_on_goal_incomplete is true."},
		{map[string]any{"retry_on_goal_incomplete": true, "goal_completion_variable": "status"}, "", ""},
		{map[string]any{"goal_completion_variable": "summary"}, "goal_completion_variable",
			"The goal_completion_variable field must name a bool of the assistant's post_call_schema."},
		{map[string]any{"goal_completion_variable": "gone"}, "goal_completion_variable",
			"The goal_completion_variable field must name a bool of the assistant's post_call_schema."},
		{map[string]any{"goal_completion_variable": long}, "goal_completion_variable",
			"The goal_completion_variable field must not be greater than 255 characters."},
		{map[string]any{"phone_number_ids": []any{own}}, "", ""},
		{map[string]any{"phone_number_ids": []any{own, own}}, "phone_number_ids.1",
			"The phone_number_ids.1 field has a duplicate value."},
		{map[string]any{"phone_number_ids": []any{foreign}}, "phone_number_ids.0",
			"The selected phone_number_ids.0 is invalid."},
		{map[string]any{"phone_number_ids": []any{own, 999999}}, "phone_number_ids.1",
			"The selected phone_number_ids.1 is invalid."},
		{map[string]any{"phone_number_ids": []any{"x"}}, "phone_number_ids.0",
			"The phone_number_ids.0 field must be an integer."},
	} {
		a := h.post("/user/campaigns", with(good, c.change))
		if c.field != "" {
			a.says(c.field, c.text)
			continue
		}
		if a.status != 201 {
			t.Errorf("%v answered %d %s", c.change, a.status, a.body)
			continue
		}
		h.delete(fmt.Sprintf("/user/campaigns/%d", id(a.json()["data"].(map[string]any))), status(200))
	}
	for _, none := range []int64{theirs, inbound, 999999, -1} {
		h.post("/user/campaigns", with(good, map[string]any{"assistant_id": none}),
			status(404)).is(`{"message":"Assistant not found or not outbound"}`)
	}
	// All errors are reported at once; that the assistant does not exist is reported only when nothing else is wrong.
	h.post("/user/campaigns", map[string]any{"assistant_id": 999999, "max_retries": 9,
		"phone_number_ids": []any{foreign}}).fails("name", "max_retries", "phone_number_ids.0")
	h.post("/user/campaigns", nil, raw(`{`), status(422))

	// A change is validated by the same rules, and values that are there already may stay.
	at := fmt.Sprintf("/user/campaigns/%d", h.campaign(map[string]any{"assistant_id": who,
		"retry_on_goal_incomplete": true, "goal_completion_variable": "status", "max_calls_in_parallel": 8}))
	h.put(at, map[string]any{"goal_completion_variable": "summary"}).fails("goal_completion_variable")
	h.put(at, map[string]any{"assistant_id": inbound},
		status(404)).is(`{"message":"Assistant not found or not outbound"}`)
	h.put(at, nil, raw(`{"name":null,"assistant_id":null}`)).fails("name", "assistant_id")
	h.put(at, nil, raw(`{"goal_completion_variable":null}`)).fails("goal_completion_variable")
	h.put(fmt.Sprintf("/user/assistant/%d", who), map[string]any{"post_call_schema": []any{}}, status(200))
	h.write(func(ctx context.Context, tx *store.Tx) error {
		u, err := tx.User(ctx, h.user.ID)
		u.Plan = "trial"
		if err == nil {
			err = tx.SaveUser(ctx, u)
		}
		return err
	})
	h.put(at, nil, raw(string(h.get(at).body)), status(200))
	h.put(at, map[string]any{"max_calls_in_parallel": 3}).says("max_calls_in_parallel",
		"The max_calls_in_parallel field must not be greater than 2.")
	h.delete(fmt.Sprintf("/user/assistant/%d", who), status(200))
	h.put(at, map[string]any{"name": "Its assistant is gone"}, status(200))
}

// A plan limits how many campaigns there are, also when several are made at the same time, and how many calls each may
// have at once by default.
func TestCampaignPlan(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.write(func(ctx context.Context, tx *store.Tx) error {
			u, err := tx.User(ctx, h.user.ID)
			u.Plan = "trial"
			if err == nil {
				err = tx.SaveUser(ctx, u)
			}
			return err
		})
		who := h.caller(nil)
		body := map[string]any{"name": "Spring", "assistant_id": who}
		h.post("/user/campaigns", with(body, map[string]any{"max_calls_in_parallel": 3})).says(
			"max_calls_in_parallel", "The max_calls_in_parallel field must not be greater than 2.")
		var wg sync.WaitGroup
		var mu sync.Mutex
		answers := map[int]int{}
		for range 8 {
			wg.Go(func() {
				a := h.post("/user/campaigns", body)
				mu.Lock()
				answers[a.status]++
				mu.Unlock()
			})
		}
		wg.Wait()
		if answers[201] != 1 || answers[403] != 7 {
			t.Errorf("eight made together were answered %v", answers)
		}
		h.post("/user/campaigns", body, status(403)).
			is(`{"message":"Your plan allows 1 campaigns. Delete what you no longer need, or ask the operator of this server for a larger plan."}`)
		c := h.get("/user/campaigns").list()[0]
		if fmt.Sprint(c["max_calls_in_parallel"]) != "2" {
			t.Errorf("by default it has %v calls at once", c["max_calls_in_parallel"])
		}
		h.delete(fmt.Sprintf("/user/campaigns/%d", id(c)), status(200))
		key := header("Idempotency-Key", "once")
		first := h.post("/user/campaigns", body, key, status(201))
		if again := h.post("/user/campaigns", body, key, status(201)); !bytes.Equal(first.body, again.body) {
			t.Errorf("the same key made %s", again.body)
		}
	})
}

func TestCampaignStatus(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		move := func(id int64, action string, n int, want string) {
			t.Helper()
			h.post("/user/campaigns/update-status", map[string]any{"campaign_id": id, "action": action},
				status(n)).is(want)
		}
		refuse := func(id int64, action, why string) {
			t.Helper()
			move(id, action, 400, fmt.Sprintf(`{"success":false,"message":%q}`, why))
		}
		who := h.caller(map[string]any{"status": "inactive"})
		c := h.campaign(map[string]any{"assistant_id": who})
		refuse(c, "stop", "The campaign is not in progress.")
		refuse(c, "start", "The campaign's assistant is inactive: activate it first.")
		h.put(fmt.Sprintf("/user/assistant/%d", who), map[string]any{"status": "active"}, status(200))
		refuse(c, "start", "There is no phone number to call from: give the campaign or its assistant one.")
		h.put(fmt.Sprintf("/user/campaigns/%d", c), map[string]any{"phone_number_ids": []any{h.number()}}, status(200))
		refuse(c, "start", "The campaign has no leads to call.")
		h.lead(c, "+14155550101")
		started := fmt.Sprintf(`{"message":"Campaign started successfully","success":true,"data":{"campaign_id":%d,"status":"in-progress"}}`, c)
		for range 2 { // starting makes calls: a client that lost the answer asks again under the same key
			h.post("/user/campaigns/update-status", map[string]any{"campaign_id": c, "action": "start"},
				header("Idempotency-Key", "start"), status(200)).is(started)
		}
		refuse(c, "start", "The campaign is already in progress.")
		if now := h.get(fmt.Sprintf("/user/campaigns/%d", c)).json(); now["status"] != "in-progress" ||
			now["started_at"] == nil {
			t.Errorf("%v", now)
		}
		move(c, "stop", 200,
			fmt.Sprintf(`{"message":"Campaign stopped successfully","success":true,"data":{"campaign_id":%d,"status":"stopped"}}`, c))
		refuse(c, "stop", "The campaign is not in progress.")
		move(c, "start", 200, started)

		other := h.stranger()
		other.post("/user/campaigns/update-status", map[string]any{"campaign_id": c, "action": "stop"},
			status(404)).is(`{"success":false,"message":"Campaign not found"}`)
		poor := other.campaign(map[string]any{"phone_number_ids": []any{other.number()}})
		other.lead(poor, "+14155550102")
		other.post("/user/campaigns/update-status", map[string]any{"campaign_id": poor, "action": "start"},
			status(400)).is(`{"success":false,"message":"Insufficient balance"}`)
		move(999999, "start", 404, `{"success":false,"message":"Campaign not found"}`)
		h.post("/user/campaigns/update-status", nil, status(422)).fails("campaign_id", "action")
		h.post("/user/campaigns/update-status", map[string]any{"campaign_id": c, "action": "pause"}).says("action",
			"The action field must be one of: start, stop.")
	})
}

func TestBlacklist(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.get("/user/blacklist", status(200)).is(`{"data":[]}`)
		c := h.campaign(nil)
		before := h.lead(c, "+14155550101")
		made := h.post("/user/blacklist", map[string]any{"phone_number": "+1 415 555 0101"}, status(201)).json()
		e := made["data"].(map[string]any)
		if made["message"] != "Phone number added to the blacklist successfully" ||
			e["phone_number"] != "+14155550101" ||
			!slices.Equal(slices.Sorted(maps.Keys(e)), []string{"created_at", "id", "phone_number"}) {
			t.Errorf("%v", made)
		}
		h.post("/user/blacklist", map[string]any{"phone_number": "0014155550101"}).says("phone_number",
			"The phone_number is on the blacklist already.")
		h.post("/user/blacklist", map[string]any{"phone_number": "12"}).says("phone_number",
			"The phone_number field must be a valid phone number in international format.")
		h.post("/user/blacklist", nil).says("phone_number", "The phone_number field is required.")
		if got := h.get(fmt.Sprintf("/user/leads/%d", before)).json(); got["status"] != "blacklisted" {
			t.Errorf("a lead that waited is %v", got["status"])
		}
		after := h.post("/user/lead", map[string]any{"campaign_id": h.campaign(nil),
			"phone_number": "+14155550101"}, status(200)).json()["data"].(map[string]any)
		if after["status"] != "blacklisted" {
			t.Errorf("one that was added is %v", after["status"])
		}
		at := fmt.Sprintf("/user/leads/%d", before)
		h.put(at, map[string]any{"status": "created"}).says("status",
			"The status can't be created: the phone_number is on the blacklist.")
		other := h.stranger()
		if got := other.get("/user/blacklist").json()["data"].([]any); len(got) != 0 {
			t.Errorf("another user sees %v", got)
		}
		one := fmt.Sprintf("/user/blacklist/%d", id(e))
		other.delete(one, status(404)).is(`{"message":"Blacklist entry not found"}`)
		h.delete(one, status(200)).is(`{"message":"Phone number removed from the blacklist successfully"}`)
		h.delete(one, status(404))
		if got := h.get(at).json(); got["status"] != "blacklisted" {
			t.Errorf("a lead came back by itself: %v", got["status"])
		}
		h.put(at, map[string]any{"status": "created"}, status(200))
		if got := h.get(at).json(); got["status"] != "created" {
			t.Errorf("a lead that was reset is %v", got["status"])
		}
	})
}

// lead adds a number to a campaign.
func (h *harness) lead(campaign int64, phone string) int64 {
	h.Helper()
	return id(h.post("/user/lead", map[string]any{"campaign_id": campaign, "phone_number": phone},
		status(200)).json()["data"].(map[string]any))
}
