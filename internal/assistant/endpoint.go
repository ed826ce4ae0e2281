package assistant

import (
	"cmp"
	"context"
	"log/slog"
	"strconv"
	"time"

	"parley/internal/ai"
	"parley/internal/catalog"
	"parley/internal/endpoint"
	"parley/internal/parley"
)

// endpoint is what does a part for an assistant before its own vendor: an endpoint of the account's own; nil where it names
// none, or may not use any more.
func (d *Studio) endpoint(a *parley.Assistant, part parley.EndpointPart) *endpoint.Vendors {
	e := a.Endpoint(part)
	if e == nil || a.Mode != "pipeline" || !d.Endpoints.May(context.Background(), a.UserID) {
		return nil
	}
	v, err := d.Endpoints.Open(e)
	if err != nil {
		slog.Warn("an endpoint can't be used", "endpoint", e.ID, "user", e.UserID, "error", err)
		return nil
	}
	return v
}

// endpointName is what an endpoint is called in records.
func endpointName(v *endpoint.Vendors) string { return endpoint.Code + "/" + v.Endpoint.Name }

// endpointCircuit names what fails together: an endpoint, as it was saved last.
func endpointCircuit(v *endpoint.Vendors) string {
	return endpoint.Code + " " + strconv.FormatInt(v.Endpoint.ID, 10) + " " + strconv.FormatInt(int64(v.Endpoint.UpdatedAt), 10)
}

// waits is how long an endpoint may take before another is asked too.
func waits(v *endpoint.Vendors, otherwise time.Duration) time.Duration {
	return cmp.Or(time.Duration(v.Endpoint.WaitMS)*time.Millisecond, otherwise)
}

// ask has the assistant's own endpoint, if it has one, answer the turns, before its model.
func (r *Ready) ask(a *parley.Assistant, o Occasion) error {
	own := r.studio.endpoint(a, parley.EndpointModel)
	if own == nil {
		return nil
	}
	first, err := r.studio.own(a)
	if err != nil {
		return err
	}
	m, err := r.studio.mind(a, first, own)
	if err != nil {
		return err
	}
	p := Party(a, o)
	p.Variables = r.Variables
	r.model, r.reader = partyModel{m, p}, partyModel{r.reader, p}
	r.warm = func() {
		r.studio.Endpoints.Background(func(ctx context.Context) { own.Warm(ai.ForParty(ctx, p)) })
	}
	return nil
}

// Over says that a call or conversation is over, by its Occasion.Of.
func (d *Studio) Over(of string) { d.Endpoints.Over(of) }

// Party is whom vendors are asked for on an occasion.
func Party(a *parley.Assistant, o Occasion) ai.Party {
	return ai.Party{Of: o.Of, Assistant: a.ID, Customer: o.CustomerPhone, Name: a.Name, Language: catalog.ISO(a.LanguageID)}
}

// partyModel is a model that is asked for a party.
type partyModel struct {
	ai.Model
	party ai.Party
}

// Generate implements ai.Model.
func (m partyModel) Generate(ctx context.Context, req ai.Request, yield func(ai.Delta) error) (ai.Reply, error) {
	return m.Model.Generate(ai.ForParty(ctx, m.party), req, yield)
}
