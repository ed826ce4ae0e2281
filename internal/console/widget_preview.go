package console

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"time"

	"parley/internal/assistant"
	"parley/internal/form"
	"parley/internal/parley"
	"parley/internal/web"
	"parley/internal/widget"
)

// previewPolicy lets the console alone put the preview into a page. The widget styles itself, and shows a picture from anywhere.
const previewPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src https: http:; base-uri 'none'; " +
	"form-action 'none'; frame-ancestors 'self'"

// widgetPreview shows the widget as the editor's form would have it, saved or not.
func (c *Console) widgetPreview(r *request) (*answer, error) {
	a, err := c.Assistants.Drafted(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	if r.Method == http.MethodPost { // what can't be right is shown as it is saved
		form.Bind(decode(r.PostForm, reflect.TypeFor[parley.Assistant]()), a, false)
	}
	iso := ""
	if l := c.Catalog.Language(a.LanguageID); l != nil {
		iso = l.ISO2
	}
	shown := widget.Show(a, iso, parley.Render(a.InitialMessage,
		assistant.Variables(a, assistant.Occasion{Now: time.Now()})), c.Answer != nil)
	settings, err := json.Marshal(shown)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := widgetPreviewPage(a.UUID, string(settings)).Render(r.Context(), &b); err != nil {
		return nil, err
	}
	r.w.Header().Set("Content-Security-Policy", previewPolicy)
	r.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	web.SendZipped(r.w, r.Request, http.StatusOK, b.Bytes())
	return nil, nil
}
