package console

import (
	"parley/internal/parley"
)

// shareView is the page of an assistant's share links.
type shareView struct {
	*parley.Assistant
	links []parley.Key
	fresh string // the link that was just made: it is shown once
}

func (c *Console) shareView(r *request) (*shareView, error) {
	a, err := c.DB.Assistant(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	links, err := c.Auth.Shares(r.Context(), r.UserID(), a.ID)
	return &shareView{Assistant: a, links: links}, err
}

func (c *Console) shareList(r *request) (*answer, error) {
	v, err := c.shareView(r)
	if err != nil {
		return nil, err
	}
	return show("Share "+v.Name, shareList(v)), nil
}

func (c *Console) shareMake(r *request) (*answer, error) {
	_, token, err := c.Auth.Share(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	v, err := c.shareView(r)
	if err != nil {
		return nil, err
	}
	v.fresh = c.Front.Base(r.Request) + "/share/" + token
	return show("Share "+v.Name, shareList(v)), nil
}

func (c *Console) shareRevoke(r *request) (*answer, error) {
	if err := c.Auth.Unshare(r.Context(), r.UserID(), r.id("id")); err != nil {
		return nil, err
	}
	return see(assistantPath(r.id("id"), "/share"), "unshared"), nil
}

// sharedPage is what somebody without an account sees who has a share link: the widget, on a page of ours.
func (c *Console) sharedPage(r *request) (*answer, error) {
	userID, id, _, err := c.Auth.Shared(r.Context(), r.PathValue("token"))
	if err != nil {
		return nil, err
	}
	a, err := c.Assistants.Drafted(r.Context(), userID, id)
	if err != nil {
		return nil, err
	}
	return show(a.Name, sharedPage(a.Name, r.PathValue("token"))), nil
}
