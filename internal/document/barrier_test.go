package document

import (
	"strings"
	"testing"
)

// What stands in the way of a page is told from pages that speak about it, or have it besides.
func TestBarriers(t *testing.T) {
	prose := "<p>" + strings.Repeat("Our bakery in Baker Street bakes bread every night and sells it from six in the morning. ", 4) + "</p>"
	banner := `<div id="cmp" class="cmp-wrap"><h2>We value your privacy</h2><p>We and our 812 partners store and/or access information on a device, such as cookies, for personalised advertising.</p><button>Accept all</button><a>Reject all</a><a>Manage preferences</a></div>`
	login := `<form action="/login"><label>E-mail</label><input type="email" name="user"><label>Password</label><input type="password" name="pw"><button>Log in</button></form>`
	for _, c := range []struct{ name, html, want string }{
		{"Cloudflare", `<title>Just a moment...</title><body class="no-js"><div class="main-wrapper"><noscript><div>Enable JavaScript and cookies to continue</div></noscript></div><script>(function(){window._cf_chl_opt={cvId:'3'};})();</script>`, IsChallenge},
		{"Cloudflare, blocked", `<title>Attention Required! | Cloudflare</title><h1>Sorry, you have been blocked</h1><p>You are unable to access example.com. Cloudflare Ray ID: 8f1</p><script src=x></script>`, IsChallenge},
		{"Imperva", `<html><head><META NAME="robots" CONTENT="noindex,nofollow"><script src="/_Incapsula_Resource?SWJIYLWA=5074a744"></script></head><body></body>`, IsChallenge},
		{"DataDome", `<title>example.com</title><script>var dd={'host':'geo.captcha-delivery.com'}</script><script src="https://ct.captcha-delivery.com/c.js"></script><p>Please enable JS and disable any ad blocker</p>`, IsChallenge},
		{"PerimeterX", `<title>Access to this page has been denied</title><p>Press & Hold to confirm you are a human (and not a bot).</p><div id="px-captcha"></div>`, IsChallenge},
		{"a puzzle", `<title>Robot Check</title><p>Sorry, we just need to make sure you are not a robot. Solve the captcha below.</p><form><div class="g-recaptcha"></div></form>`, IsChallenge},
		{"in Russian", `<title>Вы не робот?</title><h1>Подтвердите, что вы не робот</h1><div class="SmartCaptcha-captcha"></div>`, IsChallenge},
		{"a page with Cloudflare's script", `<title>Bakery</title><h1>Bakery</h1>` + prose +
			`<script src="/cdn-cgi/challenge-platform/scripts/jsd/main.js"></script><div class="g-recaptcha"></div>`, ""},

		{"consent wall", `<title>Bakery</title>` + banner + `<script>1</script>`, isConsent},
		{"Google's", `<title>Before you continue to Google Search</title><h1>Before you continue to Google</h1><p>We use cookies and data to deliver and maintain Google services. If you choose to "Accept all", we will also use cookies and data to show personalized ads.</p><form><button>Reject all</button><button>Accept all</button></form>`, isConsent},
		{"in German", `<title>Zeitung</title><div><h1>Mit Werbung weiterlesen</h1><p>Wir benötigen Ihre Zustimmung: Wir und unsere 211 Partner verwenden Cookies für personalisierte Werbung und Tracking.</p><button>Alle akzeptieren</button></div>`, isConsent},
		{"a page with a banner", `<title>Bakery</title><h1>Bakery</h1>` + prose + banner, ""},
		{"a page with a banner, first", `<title>Bakery</title>` + banner + `<div><div><h1>Bakery</h1>` + prose + `</div></div>`, ""},
		{"a privacy policy", `<title>Privacy</title><main><h1>We value your privacy</h1>` +
			strings.Repeat(`<p>We and our partners use cookies for personalized ads. Choose accept all or reject all to manage preferences.</p>`,
				20) + `</main>`, ""},

		{"soft 404", `<title>Page not found - Bakery</title><h1>Oops!</h1><p>We can't find the page you are looking for.</p>`, isMissing},
		{"404 in its heading", `<title>Bakery</title><h1>404</h1><p>Go home</p>`, isMissing},
		{"in French", `<title>Boulangerie</title><h1>Page introuvable</h1><p>Retour à l’accueil</p>`, isMissing},
		{"in Japanese", `<title>パン屋</title><h1>お探しのページが見つかりません</h1>`, isMissing},
		{"an article about it", `<title>How we fixed "page not found" errors</title><h1>404 errors, and what to do</h1>` +
			strings.Repeat(prose, 5), ""},
		{"a room", `<title>Apartment 404 in Baker Street</title><h1>Apartment 404</h1>` + prose, ""},
		{"lost things", `<title>Lost and found</title><h1>Lost and found</h1><p>Umbrellas and keys are kept for a month.</p>`, ""},

		{"sign-in", `<title>Log in | Bakery</title><h1>Log in</h1>` + login, IsSignIn},
		{"sign-in in German", `<title>Kundenkonto</title><h1>Anmelden</h1><p>Bitte melden Sie sich an, um fortzufahren.</p>` + login, IsSignIn},
		{"sign-in in two steps", `<title>Sign in to Bakery</title><form><input type="email" name="identifier"><button>Next</button></form>`,
			IsSignIn},
		{"a page with a sign-in", `<title>Bakery</title><header>` + login + `</header><h1>Bakery</h1>` + prose, ""},
		{"help about signing in", `<title>Sign in</title><h1>Sign in</h1>` + strings.Repeat(prose, 3), ""},

		{"React", `<title>Bakery</title><noscript>You need to enable JavaScript to run this app.</noscript><div id="root"></div><script src="/static/js/main.js"></script>`, isScripted},
		{"a loader", `<title>Bakery</title><div id="app"><p>Loading…</p></div><script src="/app.js"></script>`, isScripted},
		{"rendered by the server", `<title>Bakery</title><div id="__next"><h1>Bakery</h1>` + prose + `</div><script src="/app.js"></script>`, ""},
		{"short, with a counter",
			`<title>Hours</title><h1>Hours</h1><p>Open daily from 6 to 18, loading dock from 5.</p><script src="/count.js"></script>`, ""},
		{"short, in Chinese", `<title>面包店</title><div id="app"><p>` + strings.Repeat("面包店每天早上六点开门，晚上六点关门，星期日休息。", 3) +
			`</p></div><script src="/app.js"></script>`, ""},
		{"nothing at all", `<title>Empty</title>`, ""},
	} {
		p, err := readHTML([]byte(c.html), "text/html; charset=utf-8", nil)
		if err != nil || p.Barrier != c.want {
			t.Errorf("%s: %q, want %q: %v", c.name, p.Barrier, c.want, err)
		}
	}
}
