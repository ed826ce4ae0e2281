package console

import (
	"cmp"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"parley/internal/auth"
	"parley/internal/parley"
)

// entry is a page that the navigation leads to.
type entry struct{ path, name, icon string }

// nav is the navigation, in groups.
var nav = [][]entry{
	{
		{"/", "Overview", "overview"},
		{"/analytics", "Analytics", "chart"},
		{"/alerts", "Alerts", "bell"},
		{"/assistants", "Assistants", "assistant"},
		{"/knowledge", "Knowledge", "book"},
		{"/tools", "Tools", "tool"},
	},
	{
		{"/calls", "Calls", "calls"},
		{"/live-calls", "Live calls", "mic"},
		{"/campaigns", "Campaigns", "campaign"},
		{"/conversations", "Conversations", "inbox"},
		{"/messages", "Messages", "message"},
		{"/do-not-call", "Do not call", "close"},
	},
	{
		{"/numbers", "Numbers", "phone"},
		{"/trunks", "SIP trunks", "trunk"},
		{"/whatsapp", "WhatsApp", "chat"},
	},
	{
		{"/providers", "Providers", "globe"},
		{"/webhooks", "Webhooks", "webhook"},
		{"/ledger", "Ledger", "ledger"},
		{"/people", "People", "people"},
		{"/keys", "API keys", "key"},
		{"/audit", "Audit log", "clock"},
		{"/account", "Account", "account"},
	},
}

// notices are what a page says after something was done: see(path, name) names one.
var notices = map[string]string{
	"created":     "Created.",
	"saved":       "Saved.",
	"watched":     "Created. It is checked every minute.",
	"drafted":     "The draft is saved. What is live stays as it is until you publish.",
	"recorded":    "The recording is saved. It is played on voicemails from the next call on.",
	"unrecorded":  "The recording is removed.",
	"copied":      "This is the copy. It is inactive and has no phone number.",
	"unshared":    "All links are revoked.",
	"same":        "Nothing differs from what is live, so there is no draft.",
	"published":   "Published: it is live now.",
	"discarded":   "The draft is discarded.",
	"made":        "This test repeats what the customer said. Read it through: it may contain names and other personal details.",
	"deleted":     "Deleted.",
	"bought":      "Number added.",
	"released":    "The number will be released when its paid month ends.",
	"verified":    "The number is verified.",
	"uploaded":    "Uploaded. It is being processed now.",
	"reading":     "It is being processed now.",
	"listed":      "Added. No campaign calls it from now on.",
	"unlisted":    "Removed from the list.",
	"hung-up":     "The call is being hung up.",
	"started":     "Started. It makes calls within its hours.",
	"stopped":     "Stopped. No new calls begin; live calls continue.",
	"scheduled":   "Scheduled. It starts automatically.",
	"unscheduled": "The scheduled start is canceled.",
	"sent":        "Sent.",
	"received":    "Message received.",
	"resent":      "It is being sent again.",
	"connected":   "Connected. It is available at once.",
	"entered":     "Saved, but it could not be tested: see why below.",
	"checked":     "Tested.",
	"removed":     "Removed.",
	"thinking":    "Your assistants use it now. Try one here.",
	"tested":      "The test is on its way.",
	"rotated":     "There is a new secret. Events are also signed with the old one for another 24 hours.",
	"restored":    "The older version is live again, as a new version.",
	"withdrawn":   "The invitation is withdrawn.",
	"gone":        "Removed. They are signed out, and their keys no longer work.",
	"revoked":     "The key is revoked.",
	"revoked-all": "All keys are revoked: they are refused from now on.",
	"password":    "Your password is changed. Every other session was signed out.",
	"confirmed":   "Your e-mail address is confirmed.",
	"confirming":  "A link was sent to your e-mail address. Open it to confirm the address.",
	"unsent":      "No link was sent: your address is confirmed already, this server sends no e-mail, or too many went out today.",
	"signed-out":  "You are signed out.",
	"reset":       "Your password is changed. Sign in with it.",
	"second-gone": "Two-factor sign-in is off for them. They can turn it on again on their account page.",
	"second-off":  "Two-factor sign-in is off.",
	"paid":        "Thank you. Your payment was added to your balance.",
	"paying":      "Thank you. Your payment is on its way; it is on your balance as soon as your bank confirms it.",
	"unpaid":      "The payment was not finished, and nothing was charged.",
}

// frame is what stands around a page.
type frame struct {
	title, path, notice, theme string
	user                       *parley.User // nil: nobody is signed in
	who                        *auth.Who    // likewise
	waiting                    int          // conversations that need a person
	zone                       string       // the time zone of the page's times
}

// frame is the surroundings of a request's page.
func (c *Console) frame(r *request, a *answer) frame {
	f := frame{title: a.title, path: r.URL.Path, theme: theme(r.Request), notice: notices[r.URL.Query().Get("done")]}
	if r.Method != http.MethodGet {
		f.notice = ""
	}
	if r.who != nil {
		f.user, f.who, f.zone = r.who.User, r.who, cmp.Or(a.zone, r.who.Timezone())
		n, err := c.DB.Attention(r.Context(), f.user.ID, r.who.Person())
		if err != nil && r.Context().Err() == nil { // the page stands without it
			slog.ErrorContext(r.Context(), "count what needs a person", "error", err)
		}
		f.waiting = n.Waiting
	}
	return f
}

// current says whether the page belongs to an entry of the navigation.
func (f frame) current(e entry) bool {
	return f.path == e.path || strings.HasPrefix(f.path, e.path+"/")
}

// themes are what a reader may choose: the system's, or one of ours. A cookie remembers it, so that the first paint
// is right.
var themes = []string{"auto", "light", "dark"}

const themeCookie = "parley_theme"

func theme(r *http.Request) string {
	c, err := r.Cookie(themeCookie)
	if err != nil || c.Value != "light" && c.Value != "dark" {
		return "auto"
	}
	return c.Value
}

// nextTheme is what the button changes to.
func nextTheme(now string) string {
	for i, t := range themes {
		if t == now {
			return themes[(i+1)%len(themes)]
		}
	}
	return themes[0]
}

// setTheme serves the button where no script does.
func (c *Console) setTheme(r *request) (*answer, error) {
	http.SetCookie(r.w, &http.Cookie{Name: themeCookie, Value: nextTheme(theme(r.Request)), Path: "/",
		MaxAge:   365 * 24 * 3600,
		SameSite: http.SameSiteLaxMode, Secure: c.Front.Secure(r.Request)})
	back := "/"
	if from, err := url.Parse(r.Referer()); err == nil && from.Host == r.Host && !strings.HasPrefix(from.Path, "//") {
		back = from.RequestURI()
	}
	return see(back), nil
}

// errorTitle is the heading of an error's page.
func errorTitle(status int) string {
	switch status {
	case http.StatusNotFound:
		return "Not found"
	case http.StatusForbidden:
		return "Refused"
	case http.StatusInternalServerError:
		return "Something went wrong"
	}
	return "That did not work"
}
