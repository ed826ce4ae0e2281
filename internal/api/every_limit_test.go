package api_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley/internal/ai/aitest"
	"parley/internal/api"
	"parley/internal/blob"
	"parley/internal/limit"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// elsewhere are the limits whose refusal other tests show, by the name of one.
var elsewhere = map[string]string{
	"stored_mb": "TestPlanLimits", "members": "TestMembersAndSessions", "alerts": "TestAlerts", "saved_filters": "TestFilters",
	"sessions": "TestMembersAndSessions", "member_sessions": "TestMembersAndSessions",
	"messages": "TestFullConversation", "human_replies": "TestUnpaidMessages", "unanswered_messages": "TestUnpaidMessages",
	"changes":        "TestAuditLimit",
	"parallel_calls": "TestWebTest", "requests_together": "TestSlowReaders", "streams": "TestEnter", "trunk_checks": "TestTrunkChecks",
	"connections": "TestConnectionsPerAddress", "address_streams": "TestStreamsPerAddress", "test_calls": "TestMinutesOfTests",
	"test_minutes": "TestMinutesOfTests", "webhook_tests": "TestPlanLimits", "webhook_resends": "TestTriesAreCounted",
	"tool_tests": "TestTriesAreCounted", "webhook_resends_rate": "TestTriesAreCounted", "tool_tests_rate": "TestTriesAreCounted",
	"trunk_checks_rate": "TestTrunkChecks", "requests": "TestRateOfAccount", "key_requests": "TestRequestLimit",
	"replies": "TestPublicLimitsAndCORS", "whatsapp_sends": "TestWhatsAppLimitAndNone", "sign_ins": "TestLoginLimits",
	"sign_ups":    "TestTrialAccount",
	"invitations": "TestInvitationByEmail", "caller_id_codes": "TestCallerIDs", "public_conversations": "TestVisitorsAreLimited",
	"public_messages": "TestVisitorsAreLimited", "endpoints": "TestEndpointReach", "endpoint_tests_rate": "TestEndpointMeasured",
}

// TestEveryLimit makes everything that an account can make until it is refused: at the count that the plan or the table
// says, with the right status and words, and with nothing stored of what was refused. Meanwhile it measures what that
// costs in memory and on the disk, and how long somebody else waits.
func TestEveryLimit(t *testing.T) {
	prices := usual()
	dir := t.TempDir()
	db := storetest.SQLite(t, store.Rules{Plan: func(name string) parley.Plan { return prices.Plan(name) }})
	h, model := talking(t, db, func(c *api.Config) {
		blobs, err := blob.OpenDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		c.Knowledge.Blobs, prices = blobs, c.Prices
		c.Gate = limit.New(prices.Plan, c.Rates.API)
	})
	model.Usually(aitest.Behaviour{Text: "Yes."})
	everything := tight("tools", 1000)
	prices.Plans[parley.DefaultPlan] = everything
	neighbour := h.stranger()

	serial := 0
	next := func() string { serial++; return fmt.Sprint("a", serial) }
	caller, base := h.caller(nil), h.knowledgebase(nil)
	list := h.campaign(map[string]any{"assistant_id": caller})
	_, uuid := h.active(nil)
	conv := h.converse(uuid)
	upload := func(size int) *answer {
		return h.post(fmt.Sprintf("/user/knowledgebases/%d/documents", base), nil, multi("name", "x", "type", "txt", "file", file(size)))
	}
	makers := map[string]func() *answer{
		"assistants": func() *answer { return h.post("/user/assistants", h.assistantBody()) },
		"folders":    func() *answer { return h.post("/user/folders", map[string]any{"name": next()}) },
		"labels":     func() *answer { return h.post("/user/labels", map[string]any{"name": next()}) },
		"tools":      func() *answer { return h.post("/user/tools", toolBody()) },
		"tests": func() *answer {
			return h.post(fmt.Sprintf("/user/assistants/%d/tests", caller), map[string]any{"script": examScript})
		},
		"knowledgebases":    func() *answer { return h.post("/user/knowledgebases", map[string]any{"name": "K"}) },
		"documents":         func() *answer { return upload(10) },
		"document_mb":       func() *answer { return upload(1 << 20) },
		"document_readings": func() *answer { return upload(10) },
		"numbers": func() *answer {
			offers := h.get("/user/phone-numbers/search", status(200)).rows()
			return h.post("/user/phone-numbers/purchase", map[string]any{"phone_number": offers[0]["phone_number"]})
		},
		"trunks": func() *answer {
			return h.post(trunksAt, with(trunkBody(), map[string]any{"phone_number": phoneOf(serial)}))
		},
		"campaigns": func() *answer {
			return h.post("/user/campaigns", map[string]any{"name": "Spring", "assistant_id": caller})
		},
		"leads": func() *answer {
			return h.post("/user/lead", map[string]any{"campaign_id": list, "phone_number": phoneOf(serial)})
		},
		"blacklist": func() *answer { return h.post("/user/blacklist", map[string]any{"phone_number": phoneOf(serial)}) },
		"api_keys":  func() *answer { return h.post("/user/api-keys", map[string]any{"name": "k"}) },
		"canned_answers": func() *answer {
			return h.post("/user/canned-answers", map[string]any{"name": next(), "content": "From seven."})
		},
		"notes": func() *answer {
			return h.post("/user/conversations/"+conv+"/notes", map[string]any{"content": "Called back."})
		},
		"conversations": func() *answer { return h.post("/conversations", map[string]any{"assistant_id": uuid}) },
		"test_conversations": func() *answer {
			return h.post("/conversations", map[string]any{"assistant_id": uuid, "type": "test"})
		},
		"test_messages": nil, // below
		"searches_rate": func() *answer {
			return h.post(fmt.Sprintf("/user/knowledgebases/%d/search", base), map[string]any{"query": "x"})
		},
		"number_searches_rate": func() *answer { return h.get("/user/phone-numbers/search") },
	}
	tested := h.post("/conversations", map[string]any{"assistant_id": uuid, "type": "test"}, status(200)).json()["conversation_id"].(string)
	makers["test_messages"] = func() *answer {
		return h.post("/conversations/"+tested+"/messages", map[string]any{"message": "Hi"})
	}
	use := func(name string) int {
		for _, row := range h.get("/user/limits", status(200)).rows() {
			if row["name"] == name && row["used"] != nil {
				n, err := strconv.Atoi(fmt.Sprint(row["used"]))
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
		}
		return 0
	}
	for _, l := range parley.Limits {
		if elsewhere[l.Name] != "" {
			continue
		}
		create := makers[l.Name]
		if create == nil {
			t.Errorf("nothing tests the limit %s: add how it is made here, or the test that shows its refusal", l.Name)
			continue
		}
		t.Run(l.Name, func(t *testing.T) {
			has := use(l.Name)
			most := has + 3
			if os.Getenv("PARLEY_QUALITY") == "all" && l.OfPlan() { // all that a trial may have
				trial := usual().Plan("trial")
				most = max(most, *trial.Limits()[l.Name])
			}
			if l.OfPlan() {
				plan := everything
				*plan.Limits()[l.Name] = most
				prices.Plans[parley.DefaultPlan] = plan
				defer func() { prices.Plans[parley.DefaultPlan] = everything }()
			} else {
				most = int(l.Most)
			}
			was, stored := heap(), disk(t, dir)
			var waits []time.Duration
			var last *answer
			n := has
			for ; n <= 2*most+1; n++ { // of a minute's limits, the minute may change once
				serial++
				if last = create(); last.status >= 300 {
					break
				}
				if n%3 == 0 {
					began := time.Now()
					neighbour.get("/user/me", status(200))
					waits = append(waits, time.Since(began))
				}
			}
			want, code := fmt.Sprintf("%d %s", most, l.What), 403
			if l.Span != parley.PerDay && l.Span != parley.Stored {
				code = 429
			} else if n != most {
				t.Errorf("refused after %d, want %d", n, most)
			}
			if last.status != code || !strings.Contains(string(last.body), want) || n < most {
				t.Errorf("number %d: %d %s, want %d and %q", n, last.status, last.body, code, want)
			}
			if now := use(l.Name); l.Span == parley.Stored && now > most && l.Holder() == "account" {
				t.Errorf("%d are stored, of %d", now, most)
			}
			grown, bytes := int64(heap())-int64(was), disk(t, dir)-stored
			room := int64(16)
			if l.Name == "document_mb" {
				room += int64(most)
			}
			if grown > 64<<20 || bytes > room<<20 {
				t.Errorf("the heap grew by %d KB and the disk by %d KB", grown>>10, bytes>>10)
			}
			slices.Sort(waits)
			if len(waits) > 0 {
				t.Logf("%d of %s: heap %+d KB, uploads %+d KB, somebody else's p95 %v", n, l.What, grown>>10, bytes>>10,
					waits[len(waits)*95/100].Round(10*time.Microsecond))
			}
		})
	}
}

// phoneOf is a number that nobody else has.
func phoneOf(n int) string { return fmt.Sprintf("+1415558%04d", n) }

// disk is how many bytes of files there are in a directory.
func disk(t *testing.T, dir string) (bytes int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			bytes += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// TestElsewhere checks that the tests which are named for other limits exist.
func TestElsewhere(t *testing.T) {
	var all strings.Builder
	for _, dir := range []string{".", "../store", "../limit", "../web", "../auth", "../number", "../call", "../chat", "../filter",
		"../console"} {
		files, err := filepath.Glob(dir + "/*_test.go")
		if err != nil || len(files) == 0 {
			t.Fatal(dir, err)
		}
		for _, f := range files {
			raw, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(raw)
		}
	}
	for name, test := range elsewhere {
		if parley.LimitNamed(name); !strings.Contains(all.String(), "\nfunc "+test+"(t *testing.T)") {
			t.Errorf("%s: there is no %s", name, test)
		}
	}
}
