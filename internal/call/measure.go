package call

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"parley/internal/parley"
	"parley/internal/telemetry"
)

// measure observes how quick a reply was, and adds it to the call's trace: from the last sound of the caller's turn to its
// own first. start is when the conversation's time begins.
func (l *live) measure(start parley.Time, t *parley.CallTurn) {
	at := t.Latency
	if at == nil {
		return
	}
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	about := make([]attribute.KeyValue, 0, 6)
	for _, s := range []struct {
		stage string
		ms    int64
	}{{"endpoint", at.EndpointMS}, {"transcript", at.TranscriptMS}, {"first_token", at.FirstTokenMS},
		{"first_sentence", at.FirstSentenceMS}, {"first_audio", at.FirstAudioMS}, {"first_packet", at.FirstPacketMS}} {
		if s.ms > 0 {
			telemetry.Stage(s.stage, ms(s.ms))
			about = append(about, attribute.Int64("parley.turn."+s.stage+"_ms", s.ms))
		}
	}
	heard := start.Time().Add(ms(t.StartedAtMS - at.FirstPacketMS)) // the caller's last sound
	piece := func(ctx context.Context, name string, from, to int64) {
		if to > from {
			telemetry.Note(ctx, name, heard.Add(ms(from)), heard.Add(ms(to)))
		}
	}
	ctx := telemetry.Note(l.ctx, "turn", heard, heard.Add(ms(at.FirstPacketMS)), about...)
	piece(ctx, "endpoint", 0, at.EndpointMS)
	piece(ctx, "recognition", 0, at.TranscriptMS)
	piece(ctx, "model", max(at.EndpointMS, at.TranscriptMS), at.FirstSentenceMS)
	piece(ctx, "synthesis", at.FirstSentenceMS, at.FirstAudioMS)
}

// measureEnd counts a call that is over, with its sound, and ends its trace.
func (l *live) measureEnd(c *parley.Call) {
	telemetry.CallEnded(string(c.Type), string(c.EndedReason))
	if m := c.Media; m != nil {
		ms := func(f float64) time.Duration { return time.Duration(f * float64(time.Millisecond)) }
		telemetry.Media("heard", m.Heard.LossPercent/100, ms(m.Heard.JitterMS))
		if m.Said != nil {
			telemetry.Media("said", m.Said.LossPercent/100, ms(m.Said.JitterMS))
		}
	}
	if c.RingingAt != 0 && c.AnsweredAt != 0 {
		telemetry.Note(l.ctx, "ringing", parley.Time(c.RingingAt).Time(), parley.Time(c.AnsweredAt).Time())
	}
	span := trace.SpanFromContext(l.ctx)
	span.SetAttributes(attribute.String("parley.call.ended_reason", string(c.EndedReason)))
	failure := ""
	if c.EndedReason == parley.ProviderFailure {
		failure = string(c.EndedReason)
	}
	telemetry.End(span, failure)
}
