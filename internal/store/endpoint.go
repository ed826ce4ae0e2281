package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/uptrace/bun"

	"parley/internal/parley"
)

const (
	endpointNotFound = "Endpoint not found"
	endpointSecrets  = "endpoint secrets"
)

// endpointSecret is what of an endpoint is encrypted.
type endpointSecret struct {
	Key     string
	Headers []parley.ToolHeader
}

// Endpoint is one of the user's endpoints, with its secrets.
func (q Query) Endpoint(ctx context.Context, userID, id int64) (*parley.Endpoint, error) {
	return q.endpoint(ctx, userID, id, false)
}

// EndpointForUpdate is Endpoint, kept from others until the transaction ends.
func (tx *Tx) EndpointForUpdate(ctx context.Context, userID, id int64) (*parley.Endpoint, error) {
	e, err := tx.endpoint(ctx, userID, id, true)
	return e, tx.saw(parley.AuditEndpoint, id, e, err)
}

func (q Query) endpoint(ctx context.Context, userID, id int64, lock bool) (*parley.Endpoint, error) {
	e := new(parley.Endpoint)
	s := q.q.NewSelect().Model(e).Where("id = ? AND user_id = ?", id, userID)
	if lock {
		s = q.locked(s)
	}
	if err := s.Scan(ctx); err != nil {
		return nil, notFound(err, endpointNotFound)
	}
	return e, q.unsealEndpoint(e)
}

// Endpoints are the user's endpoints, by name, with their secrets.
func (q Query) Endpoints(ctx context.Context, userID int64) ([]parley.Endpoint, error) {
	list := []parley.Endpoint{}
	if err := q.q.NewSelect().Model(&list).Where("user_id = ?", userID).Order("name").Scan(ctx); err != nil {
		return nil, err
	}
	return list, q.unsealEndpoints(list)
}

// EndpointPage is a page of the user's endpoints, newest first, with their secrets.
func (q Query) EndpointPage(ctx context.Context, userID int64, p Page) ([]parley.Endpoint, int, error) {
	list := []parley.Endpoint{}
	total, err := page(ctx, q.q.NewSelect().Model(&list).Where("user_id = ?", userID), p, "id DESC")
	if err != nil {
		return nil, 0, err
	}
	return list, total, q.unsealEndpoints(list)
}

// CreateEndpoint stores a new endpoint.
func (tx *Tx) CreateEndpoint(ctx context.Context, userID int64, e *parley.Endpoint) error {
	if err := tx.room(ctx, userID, endpointLimit, 1); err != nil {
		return err
	}
	e.ID, e.UserID, e.CreatedAt = 0, userID, parley.Now()
	e.UpdatedAt = e.CreatedAt
	if err := tx.sealEndpoint(e); err != nil {
		return err
	}
	_, err := tx.q.NewInsert().Model(e).Exec(ctx)
	return tx.note(userID, parley.AuditCreated, parley.AuditEndpoint, e.ID, e, endpointName(err))
}

// SaveEndpoint stores a changed endpoint.
func (tx *Tx) SaveEndpoint(ctx context.Context, userID int64, e *parley.Endpoint) error {
	e.UpdatedAt = parley.Now()
	if err := tx.sealEndpoint(e); err != nil {
		return err
	}
	res, err := tx.q.NewUpdate().Model(e).ExcludeColumn("id", "user_id", "created_at").
		Where("id = ? AND user_id = ?", e.ID, userID).Exec(ctx)
	return tx.note(userID, parley.AuditChanged, parley.AuditEndpoint, e.ID, e, one(res, endpointName(err), endpointNotFound))
}

func endpointName(err error) error {
	if violates(err, "endpoints.user_id, endpoints.name", "endpoints_user_id_name_key") {
		return parley.Fields{{Name: "name", Messages: []string{"The name has already been taken."}}}.Err()
	}
	return err
}

// DeleteEndpoint removes an endpoint. Assistants that named it go on with what takes over when it fails.
func (tx *Tx) DeleteEndpoint(ctx context.Context, userID, id int64) error {
	return tx.drop(ctx, userID, parley.AuditEndpoint, id, endpointNotFound,
		"DELETE FROM endpoints WHERE id = ? AND user_id = ? RETURNING name", id, userID)
}

// EndpointsOf are the user's endpoints that an assistant names, with their secrets.
func (q Query) EndpointsOf(ctx context.Context, userID int64, a *parley.Assistant) ([]parley.Endpoint, error) {
	one := []parley.Assistant{*a}
	one[0].UserID = userID
	err := q.addEndpoints(ctx, one)
	return one[0].Endpoints, err
}

// addEndpoints fills in the endpoints that some assistants name, in one query for all of them.
func (q Query) addEndpoints(ctx context.Context, assistants []parley.Assistant) error {
	var ids []int64
	for i := range assistants {
		for _, id := range assistants[i].EndpointIDs() {
			if id != nil {
				ids = append(ids, *id)
			}
		}
	}
	if len(ids) == 0 {
		return nil
	}
	var list []parley.Endpoint
	if err := q.q.NewSelect().Model(&list).Where("id IN (?)", bun.List(ids)).Order("id").Scan(ctx); err != nil {
		return err
	}
	if err := q.unsealEndpoints(list); err != nil {
		return err
	}
	for i := range assistants {
		a := &assistants[i]
		a.Endpoints = nil
		for _, e := range list {
			for _, id := range a.EndpointIDs() {
				if id != nil && *id == e.ID && e.UserID == a.UserID {
					a.Endpoints = append(a.Endpoints, e)
					break
				}
			}
		}
	}
	return nil
}

// endpointParts are the kinds as rows have them. An agent is a model there, of a protocol of its own.
var endpointParts = map[parley.EndpointKind]string{parley.EndpointLLM: "model", parley.EndpointAgent: "model", parley.EndpointTTS: "voice",
	parley.EndpointSTT: "recognizer"}

const agentProtocol = "custom"

// sealEndpoint fills in what is stored of an endpoint.
func (q Query) sealEndpoint(e *parley.Endpoint) error {
	e.Part, e.Speaks, e.FirstVoice = endpointParts[e.Kind], string(e.Protocol), ""
	if e.Kind == parley.EndpointAgent {
		e.Speaks = agentProtocol
	}
	if len(e.Voices) > 0 {
		e.FirstVoice = e.Voices[0].Code
	}
	plain, err := json.Marshal(endpointSecret{e.Key, e.Headers})
	e.Sealed, e.KeyHint = q.box.seal(endpointSecrets, plain), hint(e.Key)
	return err
}

func (q Query) unsealEndpoints(list []parley.Endpoint) error {
	for i := range list {
		if err := q.unsealEndpoint(&list[i]); err != nil {
			return err
		}
	}
	return nil
}

// unsealEndpoint is the reverse of sealEndpoint. Rows of the former version have one voice at most.
func (q Query) unsealEndpoint(e *parley.Endpoint) error {
	if e.Protocol = parley.EndpointProtocol(e.Speaks); e.Speaks == agentProtocol {
		e.Kind, e.Protocol = parley.EndpointAgent, parley.EndpointParley
	}
	for kind, part := range endpointParts {
		if part == e.Part && kind != parley.EndpointAgent && e.Speaks != agentProtocol {
			e.Kind = kind
		}
	}
	if e.Kind == parley.EndpointTTS && len(e.Voices) == 0 {
		e.Voices, e.VoiceCodes = []parley.EndpointVoice{{Code: e.FirstVoice, Name: e.FirstVoice, Gender: "female"}}, []string{e.FirstVoice}
	}
	plain, err := q.box.open(endpointSecrets, e.Sealed)
	if err != nil {
		return fmt.Errorf("secrets of endpoint %d: %w", e.ID, err)
	}
	var s endpointSecret
	err = json.Unmarshal(plain, &s)
	e.Key, e.Headers = s.Key, s.Headers
	return err
}
