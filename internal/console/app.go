package console

import (
	"net/url"
	"strings"

	"parley/internal/oauth"
	"parley/internal/parley"
)

// asked reads what an app asks for, from a page's address or from the form that it became.
func (c *Console) asked(r *request, form url.Values) (*oauth.Ask, error) {
	if c.Apps == nil {
		return nil, parley.Errorf(parley.NotFound, "There is no such page.")
	}
	return c.Apps.Read(r.Request, form)
}

// appPage asks the reader whether an app may work in their account.
func (c *Console) appPage(r *request) (*answer, error) {
	form := r.URL.Query()
	ask, err := c.asked(r, form)
	if err != nil {
		return nil, err
	}
	return show("Connect an app", appAsk(ask, form, r.who.User.Name)), nil
}

// appAllow lets the app in. A form may lead nowhere but here (form-action of the policy), so the next page leads back to the app.
func (c *Console) appAllow(r *request) (*answer, error) {
	ask, err := c.asked(r, r.PostForm)
	if err != nil {
		return nil, err
	}
	scope := parley.Role(r.PostFormValue("scope"))
	if scope != "" && !strings.Contains(allScopes, " "+string(scope)+" ") {
		return nil, parley.Errorf(parley.Refused, "There is no role %q.", scope)
	}
	back, err := c.Apps.Allow(r.Request, r.who, ask, scope)
	if err != nil {
		return nil, err
	}
	r.w.Header().Set("Refresh", "0; url="+back)
	return show("App connected", appAllowed(ask, back)), nil
}

// allScopes are the roles that an app may be limited to.
var allScopes = func() string {
	text := " "
	for _, o := range scopeOptions {
		text += o.value + " "
	}
	return text
}()

// grantDelete disconnects an app.
func (c *Console) grantDelete(r *request) (*answer, error) {
	if err := c.Auth.RevokeGrant(r.Context(), r.UserID(), r.id("id")); err != nil {
		return nil, err
	}
	return see("/keys", "revoked"), nil
}
