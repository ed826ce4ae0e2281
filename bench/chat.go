package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"parley/internal/ai/aitest"
	"parley/internal/form"
	"parley/internal/parley"
	"parley/internal/store"
)

// modelDelay is how long the model of the chat group thinks before its first and only token.
const modelDelay = 100 * time.Millisecond

// benchChat measures whole replies over a model of fixed delay: what Parley adds to a message, with 1, 50 and 200
// conversations at once. The floor is the model server asked directly by as many clients.
func benchChat(b *bench) error {
	model, err := aitest.Serve()
	if err != nil {
		return err
	}
	b.undo = append(b.undo, model.Close)
	model.Models = []string{"bench"}
	model.Usually(aitest.Behaviour{Text: "Yes.", FirstDelay: modelDelay})
	var uuid string
	p, err := b.serve(func(ctx context.Context, db *store.DB, u *parley.User, _ string) error {
		a := &parley.Assistant{}
		form.Defaults(a)
		a.Name, a.Type, a.Mode, a.Status, a.Timezone, a.VoiceID, a.LanguageID = "Bench", "inbound", "pipeline",
			"active", "UTC", 1001, 1
		a.SystemPrompt = "Say yes."
		err := db.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.CreateAssistant(ctx, u.ID, a) })
		uuid = a.UUID
		return err
	}, "PARLEY_OPENAI_BASE_URL="+model.URL, "PARLEY_OPENAI_CHAT_MODEL=bench")
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000}}
	post := func(url, body string) ([]byte, error) {
		res, err := client.Post(url, "application/json", bytes.NewReader([]byte(body)))
		if err != nil {
			return nil, err
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err == nil && res.StatusCode != 200 {
			err = fmt.Errorf("%s: %.300s", res.Status, text)
		}
		return text, err
	}
	for _, n := range []int{1, 50, 200} {
		low, err := together(n, func(int) error {
			_, err := post(model.URL+"/chat/completions",
				`{"model":"bench","stream":true,"messages":[{"role":"user","content":"Well?"}]}`)
			return err
		})
		if err != nil {
			return err
		}
		ids := make([]string, n)
		for i := range ids {
			text, err := post("http://"+p.addr+"/api/conversations", `{"assistant_id":"`+uuid+`"}`)
			if err != nil {
				return err
			}
			_, rest, _ := bytes.Cut(text, []byte(`"conversation_id":"`))
			ids[i] = string(rest[:36])
		}
		got, err := together(n, func(i int) error {
			_, err := post("http://"+p.addr+"/api/conversations/"+ids[i]+"/messages", `{"message":"Well?"}`)
			return err
		})
		if err != nil {
			return err
		}
		fmt.Printf("  %3d conversations: %.2f of the floor's messages; adds p50 %v, p99 %v   %.0f messages/s (floor %.0f/s; "+
			"the model takes %v)\n", n,
			got.perSecond/low.perSecond, (got.p50 - low.p50).Round(100*time.Microsecond),
			(got.p99 - low.p99).Round(100*time.Microsecond),
			got.perSecond, low.perSecond, modelDelay)
	}
	return nil
}

// together has n clients ask again and again for a while.
func together(n int, ask func(client int) error) (result, error) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var all []time.Duration
	var failed atomic.Pointer[error]
	began := time.Now()
	for i := range n {
		wg.Go(func() {
			for time.Since(began) < period && failed.Load() == nil {
				sent := time.Now()
				if err := ask(i); err != nil {
					failed.Store(&err)
					return
				}
				took := time.Since(sent)
				mu.Lock()
				all = append(all, took)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return result{}, *err
	}
	slices.Sort(all)
	return result{perSecond: float64(len(all)) / time.Since(began).Seconds(), p50: quantile(all, .5),
		p99: quantile(all, .99)}, nil
}
