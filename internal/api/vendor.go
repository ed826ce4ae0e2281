package api

import (
	"context"

	"parley/internal/ai"
	"parley/internal/auth"
	"parley/internal/keyring"
	"parley/internal/parley"
	"parley/internal/setup"
)

// keyRate is how often an address may have keys tried: each time a provider is asked.
var keyRate = auth.Rate{PerSecond: 0.5, Burst: 30}

func (a *API) vendorRoutes() {
	const tag, missing = "Providers", "Provider not found."
	tries := auth.NewLimiter(keyRate)
	handle(a, op{Method: "GET", Path: "/user/vendors", Name: "listVendors", Tag: tag,
		Summary: "List the providers, and whose key is used for each"}, a.listVendors)
	handle(a, op{Method: "PUT", Path: "/user/vendors/{code}/key", Name: "setVendorKey", Tag: tag, NotFound: missing,
		Limit: tries, Summary: "Test your own key of a provider, and use it from now on instead of the server's"}, a.setVendorKey)
	handle(a, op{Method: "DELETE", Path: "/user/vendors/{code}/key", Name: "deleteVendorKey", Tag: tag, NotFound: missing,
		Summary: "Remove your own key of a provider"}, a.deleteVendorKey)
	handle(a, op{Method: "POST", Path: "/user/vendors/{code}/test", Name: "testVendorKey", Tag: tag, NotFound: missing,
		Limit: tries, Summary: "Test a key without storing it, or your own stored one; its account's voices are listed again"}, a.testVendorKey)
	handle(a, op{Method: "GET", Path: "/user/setup", Name: "getSetup", Tag: tag,
		Summary: "Check what your assistants need: models, voices, speech recognition; for an operator also the server's own parts"}, a.getSetup)
	handle(a, op{Method: "GET", Path: "/server/vendors", Name: "listServerVendors", Tag: tag,
		Summary: "List the providers with the server's keys (operators only)"}, a.listServerVendors)
	handle(a, op{Method: "PUT", Path: "/server/vendors/{code}/key", Name: "setServerVendorKey", Tag: tag, NotFound: missing,
		Limit: tries, Summary: "Test the server's key of a provider, and use it from now on (operators only)"}, a.setServerVendorKey)
	handle(a, op{Method: "DELETE", Path: "/server/vendors/{code}/key", Name: "deleteServerVendorKey", Tag: tag,
		NotFound: missing, Summary: "Remove the server's entered key of a provider (operators only)"}, a.deleteServerVendorKey)
	handle(a, op{Method: "POST", Path: "/server/vendors/{code}/test", Name: "testServerVendorKey", Tag: tag,
		NotFound: missing, Limit: tries, Summary: "Test a key without storing it, or the server's (operators only)"}, a.testServerVendorKey)
}

type byVendor struct {
	Code string `path:"code"`
}

// vendorKey is a key to be stored.
type vendorKey struct {
	Key string `json:"key" required:"true" maxLength:"1000" doc:"The provider's key. It is stored encrypted, and never returned."`
}

// serverKey is the server's.
type serverKey struct {
	Key     string `json:"key" maxLength:"1000" doc:"The provider's key. It is stored encrypted, and never returned. A server of your own (by_url) may need none."`
	BaseURL string `json:"base_url" maxLength:"1000" doc:"Base URL of the provider's API, if it is not the usual one; required for a server of your own (by_url)."`
}

// keyTest is what to test.
type keyTest struct {
	Key string `json:"key" maxLength:"1000" doc:"The key to test, which is not stored; without it, the stored key is tested."`
}

type serverKeyTest struct {
	keyTest
	BaseURL string `json:"base_url" maxLength:"1000" doc:"With the key: base URL of the provider's API, if it is not the usual one."`
}

// tested is what a test found.
type tested struct {
	State     string      `json:"state" enum:"connected,refused,failing"`
	Reason    string      `json:"reason" doc:"Why it is refused or failing, and what to do; otherwise empty."`
	CheckedAt parley.Time `json:"checked_at"`
}

func (a *API) listVendors(ctx context.Context, r *request, _ *none) ([]keyring.Vendor, error) {
	return a.Keys.List(r.UserID()), nil
}

func (a *API) getSetup(ctx context.Context, r *request, _ *none) ([]setup.Part, error) {
	return a.Setup.Of(ctx, r.Who.User, r.Who.Role().Includes(parley.RoleAdministrator))
}

func (a *API) setVendorKey(ctx context.Context, r *request, in *struct {
	byVendor
	Body vendorKey
}) (*messageData[*keyring.Vendor], error) {
	v, err := a.Keys.Set(ctx, r.UserID(), in.Code, ai.Key{Secret: in.Body.Key})
	return &messageData[*keyring.Vendor]{"Key saved successfully.", v}, err
}

func (a *API) deleteVendorKey(ctx context.Context, r *request, in *byVendor) (*notice, error) {
	return &notice{"Key removed successfully."}, a.Keys.Remove(ctx, r.UserID(), in.Code)
}

func (a *API) testVendorKey(ctx context.Context, r *request, in *struct {
	byVendor
	Body keyTest
}) (*tested, error) {
	return found(a.Keys.Test(ctx, r.UserID(), in.Code, ai.Key{Secret: in.Body.Key}))
}

func found(k *parley.VendorKey, err error) (*tested, error) {
	if err != nil {
		return nil, err
	}
	return &tested{k.State, k.Reason, k.CheckedAt}, nil
}

// operator refuses who doesn't operate this server.
func (r *request) operator() error {
	if r.Who.User.Operator && r.Who.Role().Includes(parley.RoleAdministrator) {
		return nil
	}
	return parley.Errorf(parley.Forbidden, "Only an operator of this server may do this.")
}

func (a *API) listServerVendors(ctx context.Context, r *request, _ *none) ([]keyring.Vendor, error) {
	if err := r.operator(); err != nil {
		return nil, err
	}
	return a.Keys.List(0), nil
}

func (a *API) setServerVendorKey(ctx context.Context, r *request, in *struct {
	byVendor
	Body serverKey
}) (*messageData[*keyring.Vendor], error) {
	if err := r.operator(); err != nil {
		return nil, err
	}
	v, err := a.Keys.Set(ctx, 0, in.Code, ai.Key{Secret: in.Body.Key, BaseURL: in.Body.BaseURL})
	return &messageData[*keyring.Vendor]{"Key saved successfully.", v}, err
}

func (a *API) deleteServerVendorKey(ctx context.Context, r *request, in *byVendor) (*notice, error) {
	if err := r.operator(); err != nil {
		return nil, err
	}
	return &notice{"Key removed successfully."}, a.Keys.Remove(ctx, 0, in.Code)
}

func (a *API) testServerVendorKey(ctx context.Context, r *request, in *struct {
	byVendor
	Body serverKeyTest
}) (*tested, error) {
	if err := r.operator(); err != nil {
		return nil, err
	}
	return found(a.Keys.Test(ctx, 0, in.Code, ai.Key{Secret: in.Body.Key, BaseURL: in.Body.BaseURL}))
}
