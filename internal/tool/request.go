package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"parley/internal/parley"
	"parley/internal/telemetry"
)

// misfit is what is wrong with the arguments of a call.
type misfit struct{ error }

// request is the tool's request with these arguments. It fails with words for the model.
func request(ctx context.Context, t *parley.Tool, args map[string]any, vars Variables) (*http.Request, error) {
	values, err := given(t, args)
	if err != nil {
		return nil, misfit{err}
	}
	u, used, err := endpoint(t, values, vars.All)
	if err != nil {
		return nil, err
	}
	var (
		query = []string{u.RawQuery}
		rest  = map[string]any{}
	)
	for _, name := range names(t, values) {
		if v, ok := values[name]; ok && !used[name] {
			for _, text := range texts(v) {
				query = append(query, url.QueryEscape(name)+"="+url.QueryEscape(text))
			}
			rest[name] = v
		}
	}
	var body io.Reader
	if t.Method == http.MethodGet || t.Method == http.MethodDelete {
		u.RawQuery = strings.Trim(strings.Join(query, "&"), "&")
	} else {
		body = strings.NewReader(encode(rest))
	}
	req, err := http.NewRequestWithContext(ctx, t.Method, "", body)
	if err != nil {
		return nil, errors.New("its method is not valid")
	}
	req.URL = u
	req.Host = u.Host
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("User-Agent", userAgent)
	telemetry.Inject(ctx, req.Header)
	return req, setHeaders(req.Header, t.Headers, vars.Owner)
}

// ours are the headers that belong to the connection and not to the tool.
var ours = []string{
	"Accept-Encoding", "Connection", "Content-Length", "Expect", "Host", "Keep-Alive", "Proxy-Authorization",
	"Proxy-Connection", "Te",
	"Trailer", "Transfer-Encoding", "Upgrade",
}

// setHeaders sets the tool's headers. If two have the same name, the last one counts.
func setHeaders(h http.Header, headers []parley.ToolHeader, vars map[string]string) error {
	for _, th := range headers {
		name := http.CanonicalHeaderKey(th.Name)
		if slices.Contains(ours, name) {
			continue
		}
		value := strings.TrimSpace(parley.Render(th.Value, vars))
		if strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
			return fmt.Errorf("the value of its header %s holds a line break or another control character", name)
		}
		h.Set(name, value)
	}
	return nil
}
