package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/call"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

const day = 24 * time.Hour

// What is kept for so many days is there on the last day and gone on the next, and nothing else is deleted with it.
// The test runs for weeks, on its own clock.
func TestWhatIsKept(t *testing.T) {
	for _, engine := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			o := storetest.Options(t, engine)
			synctest.Test(t, func(t *testing.T) { whatIsKept(t, storetest.Open(t, o)) })
		})
	}
}

func whatIsKept(t *testing.T, db *store.DB) {
	u := storetest.User(t, db, 100*parley.USD)
	write := func(fn func(context.Context, *store.Tx) error) {
		t.Helper()
		if err := db.Write(t.Context(), fn); err != nil {
			t.Fatal(err)
		}
	}
	a := &parley.Assistant{UUID: "a", Name: "Anna", Type: "outbound", Status: "active", Mode: "pipeline",
		Timezone: "UTC", LanguageID: 1, VoiceID: 1001}
	write(func(ctx context.Context, tx *store.Tx) error { return tx.CreateAssistant(ctx, u.ID, a) })

	var conv, silent *parley.Conversation
	var talked, live *parley.Call
	var sent, queued *parley.SMS
	first, key, session := &store.FirstAnswer{}, &parley.Key{}, &parley.Key{}
	begin := func() { // make all of it today
		now := parley.Now()
		conv = &parley.Conversation{UserID: u.ID, AssistantID: a.ID, Type: parley.TestConversation,
			Variables: map[string]string{}}
		silent = &parley.Conversation{UserID: u.ID, AssistantID: a.ID, Type: parley.TestConversation,
			Variables: map[string]string{}}
		talked = &parley.Call{AssistantID: a.ID, Type: parley.CallWeb, Status: parley.CallCompleted,
			EndedAt: parley.DateTime(now), Recording: "recorded"}
		live = &parley.Call{AssistantID: a.ID, Type: parley.CallWeb, Status: parley.CallInProgress}
		sent = &parley.SMS{From: "+12025550100", To: "+12025550123", Status: parley.SMSSent, SID: "1"}
		queued = &parley.SMS{From: "+12025550100", To: "+12025550123", Status: parley.SMSQueued}
		first = &store.FirstAnswer{UserID: u.ID, Key: "k", Request: []byte("r"), CreatedAt: now}
		key = &parley.Key{UserID: u.ID, Kind: parley.APIKey, Hash: []byte("h")}
		session = &parley.Key{UserID: u.ID, Kind: parley.Session, Hash: []byte("h"), ExpiresAt: now.Add(7 * day)}
		write(func(ctx context.Context, tx *store.Tx) error {
			status := 200
			delivered := &parley.Delivery{Event: parley.EventBalanceLow, URL: "https://example.com",
				Status: parley.DeliveryDelivered, Payload: "{}"}
			return errors.Join(tx.CreateConversation(ctx, conv, "Hello."), tx.CreateConversation(ctx, silent, "Hello."),
				tx.CreateCall(ctx, u.ID, talked), tx.CreateCall(ctx, u.ID, live), tx.CreateSMS(ctx, u.ID, sent),
				tx.CreateSMS(ctx, u.ID, queued),
				tx.CreateKey(ctx, key), tx.CreateKey(ctx, session),
				tx.Reserve(ctx, u.ID, "r", parley.USD, now.Add(15*time.Minute)),
				tx.RecordDelivery(ctx, u.ID, delivered, &parley.DeliveryAttempt{At: now, Status: &status}),
				claimKey(ctx, tx, first))
		})
	}
	begin()
	s := &Settings{KeepConversations: 21, KeepRecordings: 14, KeepCalls: 60}
	calls := call.New(call.Config{DB: db})
	here := func() (names []string) {
		t.Helper()
		_, err1 := db.Conversation(t.Context(), u.ID, conv.ID)
		_, err2 := db.Conversation(t.Context(), u.ID, silent.ID)
		c, err3 := db.Call(t.Context(), u.ID, talked.ID)
		_, err4 := db.Call(t.Context(), u.ID, live.ID)
		_, err5 := db.SMS(t.Context(), u.ID, sent.ID)
		_, err6 := db.SMS(t.Context(), u.ID, queued.ID)
		_, _, _, err7 := db.Credential(t.Context(), key.ID)
		_, _, _, err8 := db.Credential(t.Context(), session.ID)
		_, deliveries, err := db.Deliveries(t.Context(), u.ID, "", "", store.Page{Number: 1, Size: 10})
		if err != nil {
			t.Fatal(err)
		}
		for i, err := range []error{err1, err2, err3, err4, err5, err6, err7, err8} {
			name := []string{"conversation", "silent", "call", "live", "sms", "queued", "key", "session"}[i]
			if err == nil {
				names = append(names, name)
			}
			if err == nil && name == "call" && c.Recording != "" {
				names = append(names, "recording")
			}
		}
		if deliveries > 0 {
			names = append(names, "delivery")
		}
		return names
	}
	start := time.Now()
	at := func(after time.Duration, want ...string) {
		t.Helper()
		time.Sleep(time.Until(start.Add(after)))
		if err := s.forget(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		if err := s.forgetOldCalls(t.Context(), calls); err != nil {
			t.Fatal(err)
		}
		if got := here(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("after %v there are %v, want %v", after, got, want)
		}
	}
	again := func() (free bool) { // whether another request may claim the idempotency key
		write(func(ctx context.Context, tx *store.Tx) error {
			old, err := tx.ClaimAnswer(ctx, &store.FirstAnswer{UserID: u.ID, Key: "k", Request: []byte("another"),
				CreatedAt: parley.Now()})
			free = old == nil
			return err
		})
		return free
	}
	everything := []string{"conversation", "silent", "call", "recording", "live", "sms", "queued", "key", "session",
		"delivery"}
	at(14*time.Minute, everything...)
	if free, err := db.Free(t.Context(), u.ID); err != nil || free != 99*parley.USD {
		t.Errorf("%v is free while a USD is set aside: %v", free, err)
	}
	at(day-time.Minute, everything...)
	if again() {
		t.Error("a key of a request was free within a day")
	}
	at(day+time.Minute, everything...)
	if !again() {
		t.Error("a key of a request is taken after a day")
	}
	at(7*day-time.Minute, everything...)
	at(7*day+time.Minute, "conversation", "silent", "call", "recording", "live", "sms", "queued", "key", "delivery")
	at(14*day-time.Minute, "conversation", "silent", "call", "recording", "live", "sms", "queued", "key", "delivery")
	at(14*day+time.Minute, "conversation", "silent", "call", "live", "sms", "queued", "key", "delivery")
	write(func(ctx context.Context, tx *store.Tx) error { // a new message comes
		return tx.AddMessage(ctx, &parley.Message{ConversationID: conv.ID, Role: parley.RoleUser}, 0, 0)
	})
	at(21*day-time.Minute, "conversation", "silent", "call", "live", "sms", "queued", "key", "delivery")
	at(21*day+time.Minute, "conversation", "call", "live", "queued", "key", "delivery")
	at(30*day-time.Minute, "conversation", "call", "live", "queued", "key", "delivery")
	at(30*day+time.Minute, "conversation", "call", "live", "queued", "key")
	at(35*day, "conversation", "call", "live", "queued", "key")
	at(35*day+2*time.Minute, "call", "live", "queued", "key")
	at(60*day-time.Minute, "call", "live", "queued", "key")
	at(60*day+time.Minute, "live", "queued", "key")
	// If no number of days is set, all of that stays.
	start = time.Now()
	begin()
	s = &Settings{}
	at(1000*day, "conversation", "silent", "call", "recording", "live", "sms", "queued", "key")
}

func claimKey(ctx context.Context, tx *store.Tx, a *store.FirstAnswer) error {
	_, err := tx.ClaimAnswer(ctx, a)
	return err
}

// The server sweeps by itself, and goes on after a failure.
func TestSweepComesRound(t *testing.T) {
	o := storetest.Options(t, "sqlite")
	synctest.Test(t, func(t *testing.T) {
		db := storetest.Open(t, o)
		u := storetest.User(t, db, 0)
		session := func() int64 {
			k := &parley.Key{UserID: u.ID, Kind: parley.Session, Hash: []byte("h"),
				ExpiresAt: parley.Now().Add(time.Minute)}
			if err := db.Write(t.Context(), func(ctx context.Context,
				tx *store.Tx) error {
				return tx.CreateKey(ctx, k)
			}); err != nil {
				t.Fatal(err)
			}
			return k.ID
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		id := session()
		a := &parley.Assistant{UUID: "a", Name: "Anna", Type: "outbound", Status: "active", Mode: "pipeline", Timezone: "UTC",
			LanguageID: 1, VoiceID: 1001}
		ended := &parley.Call{Type: parley.CallWeb, Status: parley.CallCompleted, EndedAt: parley.DateTime(parley.Now())}
		if err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			if err := tx.CreateAssistant(ctx, u.ID, a); err != nil {
				return err
			}
			ended.AssistantID = a.ID
			return tx.CreateCall(ctx, u.ID, ended)
		}); err != nil {
			t.Fatal(err)
		}
		h := &server{Settings: &Settings{KeepCalls: 1}, db: db, calls: call.New(call.Config{DB: db})}
		wg.Go(func() { h.sweep(ctx) })
		time.Sleep(9 * time.Minute)
		if _, _, _, err := db.Credential(t.Context(), id); err != nil {
			t.Error("swept early:", err)
		}
		mend := storetest.Break(t, o, "DELETE ON keys")
		time.Sleep(2 * time.Minute)
		mend()
		time.Sleep(10 * time.Minute)
		if _, _, _, err := db.Credential(t.Context(), id); !store.IsNotFound(err) {
			t.Error("not swept:", err)
		}
		if _, err := db.Call(t.Context(), u.ID, ended.ID); err != nil {
			t.Error("the call was removed early:", err)
		}
		time.Sleep(24 * time.Hour)
		if _, err := db.Call(t.Context(), u.ID, ended.ID); !store.IsNotFound(err) {
			t.Error("the call was not removed:", err)
		}
	})
}
