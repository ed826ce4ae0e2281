package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley/internal/campaign"
	"parley/internal/form"
	"parley/internal/parley"
	"parley/internal/simulator/phone"
	"parley/internal/store"
	"parley/internal/store/storetest"
	"parley/internal/testenv"
)

// benchCampaign measures campaigns: claims among 1,000,000 leads and what it costs to look at 1,000 campaigns, on
// both databases; how fast a list comes in; and how soon a free call is used. Goal: 100 ms from a call's end to the
// next INVITE.
func benchCampaign(b *bench) error {
	for _, engine := range []string{"sqlite", "postgres"} {
		fmt.Printf(" %s\n", engine)
		if err := b.claims(engine); err != nil {
			return fmt.Errorf("%s: %w", engine, err)
		}
	}
	fmt.Println(" the program, on sqlite")
	return b.dialling()
}

const (
	manyLeads     = 1_000_000
	claimAtOnce   = 10
	claimers      = 8
	claimFor      = 5 * time.Second
	manyCampaigns = 1000
)

// claims measures the store: claims of ten leads in a transaction by eight claimers, of a campaign each, against
// transactions that change one row; and reading the states of 1,000 campaigns with the planning over them.
func (b *bench) claims(engine string) error {
	ctx := context.Background()
	db, err := b.database(engine)
	if err != nil {
		return err
	}
	write := func(fn func(context.Context, *store.Tx) error) error { return db.Write(ctx, fn) }
	u := &parley.User{Name: "Bench", Email: "bench@example.com", PasswordHash: "-", Timezone: "UTC", Plan: "default"}
	a := &parley.Assistant{}
	form.Defaults(a)
	a.Name, a.Type, a.Mode, a.Status, a.Timezone, a.LanguageID, a.VoiceID, a.SystemPrompt = "Bench", "outbound",
		"pipeline", "active", "UTC", 1, 1, "Call."
	err = write(func(ctx context.Context, tx *store.Tx) error {
		if err := tx.CreateUser(ctx, u); err != nil {
			return err
		}
		return tx.CreateAssistant(ctx, u.ID, a)
	})
	if err != nil {
		return err
	}
	running := func() (*parley.Campaign, error) {
		c := &parley.Campaign{}
		form.Defaults(c)
		c.Name, c.AssistantID, c.Timezone, c.MaxCallsInParallel = "Bench", a.ID, "UTC", 10
		err := write(func(ctx context.Context, tx *store.Tx) error {
			if err := tx.CreateCampaign(ctx, u.ID, c); err != nil {
				return err
			}
			c.Status = parley.CampaignInProgress
			return tx.SaveCampaignRun(ctx, u.ID, c)
		})
		return c, err
	}
	var list []*parley.Campaign
	for range claimers {
		c, err := running()
		if err != nil {
			return err
		}
		list = append(list, c)
	}
	began := time.Now()
	for i := 0; i < manyLeads; i += 2000 {
		leads := []*parley.Lead{}
		for j := i; j < i+2000; j++ {
			leads = append(leads, &parley.Lead{PhoneNumber: fmt.Sprintf("+1415%07d", 2000000+j)})
		}
		err := write(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.AddLeads(ctx, u.ID, list[i/2000%claimers].ID, leads, false)
			return err
		})
		if err != nil {
			return err
		}
	}
	fmt.Printf("  leads stored, 2,000 at a time      %8.0f /s, to 1,000,000\n", manyLeads/time.Since(began).Seconds())

	floor, err := b.repeat(func(i int) (int, error) {
		return 1, write(func(ctx context.Context, tx *store.Tx) error { return tx.RotateCampaign(ctx, list[i].ID, 1) })
	})
	if err != nil {
		return err
	}
	claimed, err := b.repeat(func(i int) (n int, err error) {
		err = write(func(ctx context.Context, tx *store.Tx) error {
			c, err := tx.LockCampaign(ctx, list[i].ID)
			if err != nil || c == nil {
				return err
			}
			now := parley.Now()
			if _, err := tx.CampaignLive(ctx, c, now); err != nil {
				return err
			}
			leads, err := tx.ClaimLeads(ctx, c.ID, claimAtOnce, "bench", now, now.Add(time.Hour))
			if n = len(leads); err != nil {
				return err
			}
			return tx.RotateCampaign(ctx, c.ID, n)
		})
		return n, err
	})
	if err != nil {
		return err
	}
	fmt.Printf("  claims among 1,000,000 leads       %8.0f /s, ten a transaction: %.2f of the transactions that change one row (%.0f /s)\n",
		claimed, claimed/claimAtOnce/floor, floor)
	for len(list) < manyCampaigns {
		c, err := running()
		if err != nil {
			return err
		}
		list = append(list, c)
		err = write(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.AddLeads(ctx, u.ID, c.ID, []*parley.Lead{{PhoneNumber: "+14155550100"}}, false)
			return err
		})
		if err != nil {
			return err
		}
	}
	return states(ctx, db, u.ID)
}

// states measures a look at all running campaigns, against reading their rows alone.
func states(ctx context.Context, db *store.DB, userID int64) error {
	const looks = 20
	var rows, read, plan time.Duration
	for range looks {
		began := time.Now()
		if _, err := db.Campaigns(ctx, userID); err != nil {
			return err
		}
		rows += time.Since(began)
		began = time.Now()
		running, live, err := db.RunningCampaigns(ctx)
		if err != nil || len(running) != manyCampaigns {
			return fmt.Errorf("%d campaigns run: %w", len(running), err)
		}
		read += time.Since(began)
		list := make([]campaign.State, len(running))
		for i, r := range running {
			list[i] = campaign.State{ID: r.ID, User: int64(i / 10), Hours: campaign.HoursOf(&r.Campaign), Limit: 10,
				Account: 10, Live: r.Live, Due: r.First.Time(), Left: true}
		}
		began = time.Now()
		campaign.Plan(time.Now(), list, live, 1000)
		plan += time.Since(began)
	}
	fmt.Printf("  a look at 1,000 running campaigns  %8.1f ms, %.2f of reading their rows alone; planning over them %.2f ms\n",
		read.Seconds()*1000/looks, read.Seconds()/rows.Seconds(), plan.Seconds()*1000/looks)
	return nil
}

// repeat has each of the claimers work for a while, and says how much all did in a second.
func (b *bench) repeat(work func(i int) (int, error)) (float64, error) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failed error
	total, began := 0, time.Now()
	for i := range claimers {
		wg.Go(func() {
			for time.Since(began) < claimFor {
				n, err := work(i)
				mu.Lock()
				total += n
				if err != nil {
					failed = err
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return float64(total) / time.Since(began).Seconds(), failed
}

// database opens a fresh one.
func (b *bench) database(engine string) (*store.DB, error) {
	ctx := context.Background()
	o := store.Options{Secret: storetest.Secret}
	if engine == "postgres" {
		base, err := storetest.Cluster()
		if err != nil {
			return nil, err
		}
		o.Postgres = base + "/postgres"
	} else {
		dir, err := os.MkdirTemp("", "parley-bench-")
		if err != nil {
			return nil, err
		}
		b.undo = append(b.undo, func() { os.RemoveAll(dir) })
		o.Path = filepath.Join(dir, "parley.db")
	}
	db, err := store.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	b.undo = append(b.undo, func() { db.Close() })
	_, err = db.Migrate(ctx)
	return db, err
}

// dialling measures the program: a list that comes in, and how soon the next call follows one that has ended, against
// how soon a call that the API was asked for is at the far end.
func (b *bench) dialling() error {
	exchange, err := phone.Listen()
	if err != nil {
		return err
	}
	b.undo = append(b.undo, exchange.Close)
	port, release, err := testenv.Reserve(1)
	if err != nil {
		return err
	}
	b.undo = append(b.undo, release)
	p, err := b.serve(nil, "PARLEY_SIP_LISTEN=127.0.0.1:"+strconv.Itoa(port), "PARLEY_CALL_DAILY_SPEND=0",
		"PARLEY_DRAIN=1s")
	if err != nil {
		return err
	}
	assistant, err := p.caller(exchange)
	if err != nil {
		return err
	}
	c, err := p.ask("POST", "/user/campaigns", map[string]any{"name": "Bench", "assistant_id": assistant,
		"max_calls_in_parallel": 1})
	if err != nil {
		return err
	}
	id := madeID(c)
	if err := p.list(id); err != nil {
		return err
	}
	var asked []time.Duration
	for i := range 50 {
		began := time.Now()
		if _, err := p.ask("POST", "/user/make_call",
			map[string]any{"assistant_id": assistant, "phone_number": fmt.Sprintf("+1415700%04d", i)}); err != nil {
			return err
		}
		at, err := turnDown(exchange)
		if err != nil {
			return err
		}
		asked = append(asked, at.Sub(began))
	}
	if _, err := p.ask("POST", "/user/campaigns/update-status",
		map[string]any{"campaign_id": id, "action": "start"}); err != nil {
		return err
	}
	var gaps []time.Duration
	var free time.Time
	for i := range 301 {
		at, err := turnDown(exchange)
		if err != nil {
			return err
		}
		if i > 0 {
			gaps = append(gaps, at.Sub(free))
		}
		free = time.Now()
	}
	slices.Sort(gaps)
	slices.Sort(asked)
	fmt.Printf("  a call's end to the next INVITE    p50 %v, p99 %v; %.2f of make_call to its INVITE (p50 %v, p99 %v)\n",
		quantile(gaps, .5).Round(100*time.Microsecond),
		quantile(gaps, .99).Round(100*time.Microsecond), quantile(gaps, .5).Seconds()/quantile(asked, .5).Seconds(),
		quantile(asked, .5).Round(100*time.Microsecond), quantile(asked, .99).Round(100*time.Microsecond))
	return nil
}

// caller makes a trunk to the exchange, and an assistant that calls over it.
func (p *program) caller(exchange *phone.Phone) (id int64, err error) {
	t, err := p.ask("POST", "/user/phone-numbers/sip-trunks",
		map[string]any{"name": "Bench", "phone_number": "+4930901820001", "sip_address": exchange.Addr().String(),
			"inbound_authorization_type": "ip", "allowed_inbound_ips": []string{"127.0.0.1"}})
	if err != nil {
		return 0, err
	}
	voice, err := p.first("/user/assistants/voices?mode=pipeline")
	if err != nil {
		return 0, err
	}
	model, err := p.first("/user/assistants/models?type=llm")
	if err != nil {
		return 0, err
	}
	a, err := p.ask("POST", "/user/assistant", map[string]any{"name": "Bench", "type": "outbound",
		"mode": "pipeline", "status": "active", "timezone": "UTC", "system_prompt": "Call.",
		"voice_id": voice["id"], "language_id": voice["language_id"], "llm_model_id": model["id"],
		"phone_number_id": t["data"].(map[string]any)["phone_number_id"]})
	return madeID(a), err
}

// madeID is the id of what an answer says was made.
func madeID(answer map[string]any) int64 {
	data, _ := answer["data"].(map[string]any)
	id, _ := data["id"].(float64)
	return int64(id)
}

// first is the first of a list.
func (p *program) first(path string) (map[string]any, error) {
	req, err := http.NewRequest("GET", "http://"+p.addr+"/api"+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+p.token)
	var list []map[string]any
	if err := read(req, &list); err != nil || len(list) == 0 {
		return nil, fmt.Errorf("%s has %d entries: %w", path, len(list), err)
	}
	return list[0], nil
}

// turnDown takes the next call and says that the line is busy.
func turnDown(exchange *phone.Phone) (at time.Time, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	in, err := exchange.Next(ctx)
	if err != nil {
		return at, fmt.Errorf("wait for a call: %w", err)
	}
	at = time.Now()
	in.Refuse(486)
	return at, nil
}

// list imports 100,000 rows, against taking them apart alone.
func (p *program) list(id int64) error {
	const rows = campaign.MaxRows
	var file bytes.Buffer
	file.WriteString("phone_number,name,city\n")
	for i := range rows {
		fmt.Fprintf(&file, "+1415%07d,Ana %d,\"Berlin, Mitte\"\n", 2000000+i, i)
	}
	began := time.Now()
	for line := range strings.Lines(file.String()) {
		number, _, _ := strings.Cut(line, ",")
		parley.NormalizePhone(number)
	}
	floor := time.Since(began)
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	w.WriteField("campaign_id", strconv.FormatInt(id, 10))
	part, err := w.CreateFormFile("file", "list.csv")
	if err != nil {
		return err
	}
	part.Write(file.Bytes())
	w.Close()
	began = time.Now()
	req, err := http.NewRequest("POST", "http://"+p.addr+"/api/user/leads/import", &body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+p.token)
	req.Header.Set("Content-Type", w.FormDataContentType())
	var answer map[string]any
	if err := read(req, &answer); err != nil {
		return err
	}
	took := time.Since(began)
	if n := answer["data"].(map[string]any)["imported"]; n != float64(rows) {
		return fmt.Errorf("%v rows were imported", n)
	}
	fmt.Printf("  rows imported, in one upload       %8.0f /s, %.2f of judging their numbers alone (%.0f /s)\n",
		rows/took.Seconds(), floor.Seconds()/took.Seconds(), rows/floor.Seconds())
	return nil
}

// ask asks the program's API.
func (p *program) ask(method, path string, body any) (answer map[string]any, err error) {
	err = p.askFor(method, path, body, &answer)
	return answer, err
}

// askFor asks it for something of a known shape.
func (p *program) askFor(method, path string, body, out any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequest(method, "http://"+p.addr+"/api"+path, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+p.token)
	req.Header.Set("Content-Type", "application/json")
	return read(req, out)
}

func read(req *http.Request, into any) error {
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode > 299 {
		err = fmt.Errorf("%s answered %s: %.300s", req.URL.Path, res.Status, raw)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}
