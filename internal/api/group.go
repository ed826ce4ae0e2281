package api

import (
	"context"

	"parley/internal/parley"
)

// groupRoutes are those of folders and labels, by which an account orders its assistants.
func (a *API) groupRoutes() {
	const tag = "Assistants"
	for _, kind := range []parley.GroupKind{parley.Folder, parley.Label} {
		one, title := string(kind), kind.Title()
		missing := title + " not found"
		handle(a, op{Method: "GET", Path: "/user/" + one + "s", Name: "list" + title + "s", Tag: tag,
			Summary: "List the " + one + "s of assistants"},
			func(ctx context.Context, r *request, in *pageQuery) (*Paginated[parley.Group], error) {
				p := in.page(15)
				list, total, err := a.DB.Groups(ctx, r.UserID(), kind, p)
				if err != nil {
					return nil, err
				}
				e := envelope(a, r.Request, list, total, p)
				return &e, nil
			})
		for i, path := range []string{"/user/" + one, "/user/" + one + "s"} { // clients know both
			name := func(verb string) string { return verb + title + []string{"", "Plural"}[i] }
			handle(a, op{Method: "POST", Path: path, Name: name("create"), Tag: tag, Status: 201, Body: parley.Group{},
				Summary: "Create a " + one}, func(ctx context.Context, r *request, _ *none) (*messageData[*parley.Group], error) {
				g, err := a.Assistants.CreateGroup(ctx, r.UserID(), kind, r.Body)
				return &messageData[*parley.Group]{title + " created successfully", g}, err
			})
			handle(a, op{Method: "PUT", Path: path + "/{id}", Name: name("update"), Tag: tag, NotFound: missing, Body: parley.Group{},
				Partial: true, Summary: "Update the fields that are sent"},
				func(ctx context.Context, r *request, in *byID) (*messageData[*parley.Group], error) {
					g, err := a.Assistants.ChangeGroup(ctx, r.UserID(), kind, in.ID, r.Body)
					return &messageData[*parley.Group]{title + " updated successfully", g}, err
				})
			handle(a, op{Method: "DELETE", Path: path + "/{id}", Name: name("delete"), Tag: tag, NotFound: missing,
				Summary: "Delete a " + one + "; its assistants stay"},
				func(ctx context.Context, r *request, in *byID) (*notice, error) {
					return &notice{title + " deleted successfully"}, a.Assistants.DeleteGroup(ctx, r.UserID(), kind, in.ID)
				})
		}
	}
}
