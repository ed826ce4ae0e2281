package api_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/campaign"
	"parley/internal/store/storetest"
)

func TestLeadLife(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		c := h.campaign(nil)
		made := h.post("/user/lead", map[string]any{"campaign_id": c, "phone_number": "+1 (415) 555-0101",
			"variables": map[string]any{"name": "Ana", "x": "{{y}}"}}, status(200)).json()
		l := made["data"].(map[string]any)
		stamp := fmt.Sprint(l["created_at"])
		if _, err := time.Parse(time.DateTime, stamp); made["message"] != "Lead created successfully" || err != nil {
			t.Errorf("%v: %v", made, err)
		}
		at := fmt.Sprintf("/user/leads/%d", id(l))
		got := h.get(at, status(200))
		got.is(fmt.Sprintf(`{"id":%d,"campaign_id":%d,"phone_number":"+14155550101","variables":{"name":"Ana","x":"{{y}}"},"status":"created","attempts":0,"next_attempt_at":null,"last_call_id":null,`+
			`"outcome":null,"answered_by":null,"evaluation":{},"extracted_variables":{},"total_cost":0,"secondary_contacts":[],"created_at":"%s","updated_at":"%s","campaign":{"id":%d,"name":"Spring"}}`, id(l), c, stamp, stamp, c))
		if fmt.Sprint(got.json()) != fmt.Sprint(l) {
			t.Errorf("POST answered %v", l)
		}
		dup := map[string]any{"campaign_id": c, "phone_number": "+14155550101"}
		h.post("/user/lead", dup).says("phone_number",
			"The phone_number is in this campaign already: send allow_duplicate to add it again.")
		h.post("/user/lead", with(dup, map[string]any{"allow_duplicate": true}), status(200))
		h.post("/user/lead", with(dup, map[string]any{"allow_dupplicate": true}), status(200))
		h.post("/user/lead", with(dup, map[string]any{"campaign_id": h.campaign(nil)}), status(200))
		h.post("/user/lead", dup).fails("phone_number")

		h.put(at, map[string]any{"variables": map[string]any{"x": "2", "city": "Rom"}}, status(200))
		if now := h.get(at).json(); fmt.Sprint(now["variables"]) != "map[city:Rom name:Ana x:2]" {
			t.Errorf("merged: %v", now["variables"])
		}
		h.put(at, map[string]any{"status": "completed"}, status(200))
		if now := h.get(at).json(); now["status"] != "completed" {
			t.Errorf("%v", now)
		}
		h.put(at, map[string]any{"status": "created"}, status(200))
		h.put(at, map[string]any{"status": "processing"}).says("status",
			"The status field must be one of: created, completed, reached-max-retries.")
		h.put(at, map[string]any{"variables": map[string]any{"a": []int{1}},
			"phone_number": "x"}).fails("variables.a", "phone_number")
		free := h.lead(c, "+14155550199")
		h.put(fmt.Sprintf("/user/leads/%d", free), map[string]any{"phone_number": "+14155550101"}).fails("phone_number")
		h.put(fmt.Sprintf("/user/leads/%d", free), map[string]any{"phone_number": "+14155550102"}, status(200))
		h.put(at, nil, status(200))

		other := h.stranger()
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			other.do(method, at, nil, status(404)).is(`{"message":"Lead not found"}`)
		}
		other.put(at, map[string]any{"status": "x"}, status(404))
		other.post("/user/lead", dup, status(404)).is(`{"message":"Campaign not found"}`)
		h.post("/user/lead", with(dup, map[string]any{"campaign_id": 999999}),
			status(404)).is(`{"message":"Campaign not found"}`)
		h.post("/user/lead", nil).fails("campaign_id", "phone_number")
		h.post("/user/lead", map[string]any{"campaign_id": "x", "phone_number": "4155550101",
			"variables": []any{1}}).fails("campaign_id", "phone_number", "variables")
		h.delete(at, status(200)).is(`{"message":"Lead deleted successfully"}`)
		h.get(at, status(404))

		// It is gone as soon as its campaign is.
		h.delete(fmt.Sprintf("/user/campaigns/%d", c), status(200))
		h.get(fmt.Sprintf("/user/leads/%d", free), status(404))
		h.put(fmt.Sprintf("/user/leads/%d", free), nil, status(404))
		h.delete(fmt.Sprintf("/user/leads/%d", free), status(404))
		if list := h.get("/user/leads?page=1").json(); fmt.Sprint(list["total"]) != "1" {
			t.Errorf("%v", list)
		}
	})
}

// A number is added to a campaign once, however many requests race to add it.
func TestLeadRace(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		c := h.campaign(nil)
		var wg sync.WaitGroup
		var mu sync.Mutex
		answers := map[int]int{}
		for range 12 {
			wg.Go(func() {
				a := h.post("/user/lead", map[string]any{"campaign_id": c, "phone_number": "+14155550101"})
				mu.Lock()
				answers[a.status]++
				mu.Unlock()
			})
		}
		wg.Wait()
		if answers[200] != 1 || answers[422] != 11 {
			t.Errorf("%v", answers)
		}
		key := header("Idempotency-Key", "lead")
		first := h.post("/user/lead", map[string]any{"campaign_id": c, "phone_number": "+14155550102"}, key,
			status(200))
		if again := h.post("/user/lead", map[string]any{"campaign_id": c, "phone_number": "+14155550102"}, key,
			status(200)); !bytes.Equal(first.body, again.body) {
			t.Errorf("the same key made %s", again.body)
		}
	})
}

func TestLeadList(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		a, b := h.campaign(nil), h.campaign(nil)
		for i := range 4 {
			h.lead(a, fmt.Sprintf("+1415555010%d", i))
		}
		done := h.lead(b, "+14155550101")
		h.put(fmt.Sprintf("/user/leads/%d", done), map[string]any{"status": "completed"}, status(200))
		today := time.Now().UTC().Format(time.DateOnly)
		for query, want := range map[string]int{"": 5, fmt.Sprintf("?campaign_id=%d", a): 4, "?status=completed": 1,
			"?phone_number=%2B14155550101": 2, "?phone_number=+14155550101": 2,
			"?phone_number=14155550101": 2, fmt.Sprintf("?campaign_id=%d&status=created", b): 0, "?date_from=" +
				today: 5, "?date_to=2000-01-01": 0, "?phone_number=x": 0,
			"?status=&campaign_id=&phone_number=&date_from=": 5} {
			if got := h.get("/user/leads?page=1&"+strings.TrimPrefix(query, "?"), status(200)).json(); fmt.Sprint(got["total"]) != fmt.Sprint(
				want) || len(got["data"].([]any)) != want {
				t.Errorf("%q: %v", query, got["total"])
			}
		}
		page := h.get("/user/leads?per_page=2&page=2", status(200)).json()
		if rows := page["data"].([]any); len(rows) != 2 ||
			rows[0].(map[string]any)["phone_number"] != "+14155550102" || fmt.Sprint(page["last_page"]) != "3" {
			t.Errorf("%v", page)
		}
		h.get("/user/leads?status=gone&campaign_id=x&per_page=0&date_from=x").fails("status", "campaign_id",
			"per_page", "date_from")
		other := h.stranger()
		other.get(fmt.Sprintf("/user/leads?campaign_id=%d", a), status(404)).is(`{"message":"Campaign not found"}`)
		if got := other.get("/user/leads?page=1").json(); fmt.Sprint(got["total"]) != "0" {
			t.Errorf("another user sees %v", got)
		}
	})
}

func TestLeadImport(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		storetest.Jobs(t, h.db, h.api.Campaigns.AddWorkers, campaign.Queue)
		c := fmt.Sprint(h.campaign(nil))
		h.post("/user/blacklist", map[string]any{"phone_number": "+14155550105"}, status(201))
		list := "\ufeffphone_number;Name;note\r\n+14155550101;Ána;=1+1\r\n4155550102;Bo;\r\n+14155550103;\"never closed;x\r\n" +
			"+1 415 555 0101;again;\r\n\r\n;nobody;\r\n+14155550105;on the list;\r\n+14155550106;\"a;b\";last"
		got := h.post("/user/leads/import", nil, multi("file", strings.NewReader(list), "campaign_id", c), status(200))
		got.is(`{"message":"Leads imported successfully","data":{"imported":3,"skipped":4,"errors":[` +
			`{"row":2,"field":"phone_number","message":"The phone_number field must be a valid phone number in international format. 4155550102 has no country code: write it with + and the country code, or choose the country of your account."},` +
			`{"row":3,"field":"row","message":"A quoted text is followed by something other than a separator: write a quote in a text twice."},` +
			`{"row":4,"field":"phone_number","message":"The phone_number is in this campaign already."},` +
			`{"row":6,"field":"phone_number","message":"The phone_number field is required."}]}}`)
		leads := h.get("/user/leads?page=1&campaign_id=" + c).json()["data"].([]any)
		want := []string{"+14155550106 created map[Name:a;b note:last]",
			"+14155550105 blacklisted map[Name:on the list]", "+14155550101 created map[Name:Ána note:=1+1]"}
		for i, l := range leads {
			l := l.(map[string]any)
			if line := fmt.Sprint(l["phone_number"], " ", l["status"], " ", l["variables"]); i >= len(want) ||
				line != want[i] {
				t.Errorf("lead %d is %s", i, line)
			}
		}
		again := h.post("/user/leads/import", nil, multi("campaign_id", c, "allow_duplicate", "1", "file",
			strings.NewReader("phone_number\n+14155550101\n")), status(200)).json()
		if d := again["data"].(map[string]any); fmt.Sprint(d["imported"], "-", d["skipped"]) != "1-0" {
			t.Errorf("%v", again)
		}

		// Under one key a list is imported once, whatever boundary separates the parts of the form.
		key := header("Idempotency-Key", "list")
		for i := range 3 {
			list := strings.NewReader("phone_number\n+14155550101\n+14155550102\n")
			a := h.post("/user/leads/import", nil, key,
				multi("campaign_id", c, "allow_duplicate", "1", "file", list), status(200))
			a.is(`{"message":"Leads imported successfully","data":{"imported":2,"skipped":0,"errors":[]}}`)
			if replayed := a.header.Get("Idempotent-Replayed") == "true"; replayed != (i > 0) {
				t.Errorf("import %d: replayed is %v", i, replayed)
			}
		}
		if n := h.get("/user/leads?page=1&campaign_id=" + c).json()["total"]; n != json.Number("6") {
			t.Errorf("%v leads", n)
		}
		h.post("/user/leads/import", nil, key, multi("campaign_id", c, "file",
			strings.NewReader("phone_number\n+14155550103\n")), status(409))
		h.post("/user/leads/import", nil, key, multi("campaign_id", c), status(422)) // nothing was claimed

		one := func() io.Reader { return strings.NewReader("phone_number\n+14155550109\n") }
		h.post("/user/leads/import", nil, multi("campaign_id", c)).says("file", "The file field is required.")
		h.post("/user/leads/import", map[string]any{"campaign_id": 1}).says("file", "The file field is required.")
		h.post("/user/leads/import", nil, multi("file", one())).says("campaign_id",
			"The campaign_id field is required.")
		h.post("/user/leads/import", nil, multi("file", one(), "campaign_id", "x")).says("campaign_id",
			"The campaign_id field must be an integer.")
		h.post("/user/leads/import", nil).fails("campaign_id", "file")
		h.post("/user/leads/import", nil, multi("campaign_id", c, "file",
			strings.NewReader("name\nAna\n"))).says("file",
			"The file field must have a phone_number column. Its columns are: name")
		h.post("/user/leads/import", nil, multi("campaign_id", c, "file", strings.NewReader(""))).says("file",
			"The file field must not be empty.")
		h.post("/user/leads/import", nil, multi("campaign_id", "999999", "file", one()),
			status(404)).is(`{"message":"Campaign not found"}`)
		h.stranger().post("/user/leads/import", nil, multi("campaign_id", c, "file", one()),
			status(404)).is(`{"message":"Campaign not found"}`)
		h.post("/user/leads/import", nil, raw("phone_number\n"), header("Content-Type", "text/csv"), status(415))
	})
}

// 100,000 rows can come in one upload; rows beyond that are reported; a body that is too large is refused.
func TestLeadImportLimits(t *testing.T) {
	h := lite(t, nil)
	storetest.Jobs(t, h.db, h.api.Campaigns.AddWorkers, campaign.Queue)
	c := fmt.Sprint(h.campaign(nil))
	var list strings.Builder
	list.WriteString("phone_number,name\n")
	for i := range 100_002 {
		fmt.Fprintf(&list, "+1415%03d%04d,Ana %d\n", 200+i/10000, i%10000, i)
	}
	began := time.Now()
	got := h.post("/user/leads/import", nil, multi("campaign_id", c, "file", strings.NewReader(list.String())),
		status(200)).json()["data"].(map[string]any)
	t.Logf("imported in %s", time.Since(began))
	errs := got["errors"].([]any)
	if fmt.Sprint(got["imported"]) != "100000" || len(errs) != 1 ||
		fmt.Sprint(errs[0].(map[string]any)["row"]) != "100001" {
		t.Errorf("imported %v skipped %v, errors %v", got["imported"], got["skipped"], errs)
	}
	h.post("/user/leads/import", nil, multi("campaign_id", c, "file", file(64<<20+1)),
		status(413)).is(`{"message":"The request body is too large."}`)
}

func TestCampaignExport(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		c := h.campaign(nil)
		vars := map[string]any{"name": "=HYPERLINK(\"http://evil\")", "city": "a \"b\", c", "-x": "+1"}
		h.post("/user/lead", map[string]any{"campaign_id": c, "phone_number": "+14155550101", "variables": vars},
			status(200))
		h.lead(c, "+14155550102")
		req, err := http.NewRequestWithContext(t.Context(), "GET",
			fmt.Sprintf("%s/api/user/campaigns/%d/export", h.url, c), nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+h.token)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/csv; charset=utf-8" ||
			res.Header.Get("Content-Disposition") != fmt.Sprintf(`attachment; filename="campaign-%d.csv"`, c) {
			t.Errorf("%d %v", res.StatusCode, res.Header)
		}
		rows, err := csv.NewReader(res.Body).ReadAll()
		if err != nil || len(rows) != 3 {
			t.Fatalf("%v: %v", rows, err)
		}
		row := map[string]string{}
		for i, name := range rows[0] {
			row[name] = rows[1][i]
		}
		want := map[string]string{"phone_number": "+14155550101", "lead_status": "created", "attempts": "0",
			"outcome": "", "total_cost": "0.00", "name": "'=HYPERLINK(\"http://evil\")", "city": "a \"b\", c",
			"'-x": "'+1", "next_attempt_at": ""}
		for name, v := range want {
			if row[name] != v {
				t.Errorf("%s is %q, want %q", name, row[name], v)
			}
		}
		if got := slices.Sorted(maps.Keys(row)); len(got) != 15 {
			t.Errorf("columns %v", got)
		}
	})
}
