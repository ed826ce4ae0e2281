package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"parley/internal/ai"
	"parley/internal/parley"
)

// Doctor asks a server about each model that it is to be used for, which costs nothing.
type Doctor struct {
	What    string // the line's name
	Setting string // what its settings begin with, as PARLEY_ANTHROPIC
	Path    string // of a model, as /v1/models/; its name follows
	Use     string // what the models are used for
}

// Check reports whether the server answers, accepts the key, and has the models, and if not, which setting to fix.
func (d Doctor) Check(ctx context.Context, c *Client, models []string) parley.Finding {
	found := func(state, format string, a ...any) parley.Finding {
		return parley.Finding{State: state, What: d.What, Text: fmt.Sprintf(format, a...)}
	}
	for _, m := range models {
		req, err := http.NewRequest(http.MethodGet, c.Base+d.Path+url.PathEscape(m), nil)
		if err != nil {
			return found("FAIL", "%s_BASE_URL is not a URL", d.Setting)
		}
		status := 0
		err = c.Ask(ctx, req, 0, func(res *http.Response) error {
			status = res.StatusCode
			body, err := io.ReadAll(res.Body)
			if err == nil && !json.Valid(body) {
				err = Malformed("the server sent no JSON")
			}
			return err
		}, func() bool { return false })
		switch {
		case err == nil:
			continue
		case strings.Contains(err.Error(), "status 404"):
			return found("FAIL", "%s has no model %s: set %s_MODEL to those that it has", c.Base, m, d.Setting)
		case ai.KindOf(err) == ai.Config:
			return found("FAIL", "%s refuses the key: check %s_API_KEY (%v)", c.Base, d.Setting, errors.Unwrap(err))
		case ai.KindOf(err) == ai.Malformed:
			return found("FAIL", "%s answers %d, but not as this API does: check %s_BASE_URL", c.Base, status, d.Setting)
		case ctx.Err() != nil:
			return found("FAIL", "%s does not answer: check %s_BASE_URL and the network", c.Base, d.Setting)
		case ai.KindOf(err) == ai.Unreachable || ai.KindOf(err) == ai.Stalled:
			return found("FAIL", "%s can't be reached: %v; check %s_BASE_URL and the network", c.Base,
				errors.Unwrap(err), d.Setting)
		}
		return found("FAIL", "%s does not answer as it should: %v", c.Base, err)
	}
	return found("ok", "%s answers; %s %s", c.Base, strings.Join(models, ", "), d.Use)
}
