package console

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"rsc.io/qr"

	"parley/internal/auth"
	"parley/internal/parley"
	"parley/internal/totp"
	"parley/internal/web"
)

// halfCookie holds the credential of somebody whose password was right, until they enter a code.
const halfCookie = "parley_half"

// askForCode goes on to the page that asks for a code.
func (c *Console) askForCode(r *request, who *auth.Who, back string) (*answer, error) {
	token, err := c.Auth.Begin(r.Context(), who, parley.HalfSession, "console", nil)
	if err != nil {
		return nil, err
	}
	c.keep(r, halfCookie, token, auth.HalfSessionFor)
	return see(codePath(back, false)), nil
}

// codePath is the address of the page that asks for a code.
func codePath(back string, recovery bool) string {
	q := url.Values{}
	if back != "/" {
		q.Set("return", back)
	}
	if recovery {
		q.Set("recovery", "1")
	}
	if len(q) == 0 {
		return "/signin/code"
	}
	return "/signin/code?" + q.Encode()
}

func (c *Console) codePage(r *request) (*answer, error) {
	half, err := c.credential(r, halfCookie, parley.HalfSession)
	if err != nil {
		return nil, err
	}
	if half == nil {
		return see("/signin"), nil
	}
	q := r.URL.Query()
	return show("Sign in", codeForm(localPath(q.Get("return")), q.Get("recovery") == "1", "")), nil
}

func (c *Console) codeEnter(r *request) (*answer, error) {
	half, err := c.credential(r, halfCookie, parley.HalfSession)
	if err != nil {
		return nil, err
	}
	if half == nil {
		return see("/signin"), nil
	}
	back := localPath(r.PostFormValue("return"))
	err = c.tooMany(r, c.Auth.CheckCode(r.Context(), half.User.ID, half.Person(), r.PostFormValue("code")))
	if e := (*parley.Error)(nil); errors.As(err, &e) {
		return &answer{status: web.Status(e.Kind), title: "Sign in",
			body: codeForm(back, r.PostFormValue("recovery") == "1", e.Message)}, nil
	}
	if err == nil {
		err = c.Auth.End(r.Context(), half)
	}
	if err != nil {
		return nil, err
	}
	c.keep(r, halfCookie, "", 0)
	return c.enter(r, half, back)
}

// codeAndPassword is the form of whoever changes how they sign in.
type codeAndPassword struct {
	Code     string `json:"code" required:"true" maxLength:"64"`
	Password string `json:"password" required:"true" maxLength:"1024" trim:"off"`
}

// secondPage sets two-factor sign-in up where that was begun, and turns it off where it is on.
func (c *Console) secondPage(r *request) (*answer, error) { return c.second(r, nil) }

func (c *Console) second(r *request, wrong parley.Fields) (*answer, error) {
	f, err := c.DB.TwoFactor(r.Context(), r.UserID(), r.who.Person())
	if e := (*parley.Error)(nil); errors.As(err, &e) && e.Kind == parley.NotFound {
		return see("/account"), nil
	}
	if err != nil {
		return nil, err
	}
	form, body := fieldsOf[codeAndPassword](nil, wrong), component(nil)
	if f.ConfirmedAt != 0 {
		body = secondOn(f, form)
	} else {
		secret, err := c.DB.TwoFactorSecret(f)
		if err != nil {
			return nil, err
		}
		code, err := qr.Encode(totp.URI(secret, r.Host, r.who.Email()), qr.M)
		if err != nil {
			return nil, fmt.Errorf("draw a QR code: %w", err)
		}
		body = secondSetUp(code, totp.Text(secret), form)
	}
	if len(wrong) > 0 {
		return invalid(secondTitle, body), nil
	}
	return show(secondTitle, body), nil
}

const secondTitle = "Two-factor sign-in"

func (c *Console) secondSetUp(r *request) (*answer, error) {
	if err := c.Auth.SetUpTwoFactor(r.Context(), r.UserID(), r.who.Person()); err != nil {
		return nil, err
	}
	return see("/account/two-factor"), nil
}

func (c *Console) secondConfirm(r *request) (*answer, error) {
	codes, token, err := c.Auth.ConfirmTwoFactor(r.Context(), r.UserID(), r.who.Person(), r.PostFormValue("code"),
		r.PostFormValue("password"), c.knowsPassword(r))
	if err != nil {
		return c.secondWrong(r, err)
	}
	c.setCookie(r, token)
	return show(secondTitle, recoveryPage(codes, true)), nil
}

func (c *Console) secondCodes(r *request) (*answer, error) {
	codes, err := c.Auth.NewRecoveryCodes(r.Context(), r.UserID(), r.who.Person(), r.PostFormValue("code"),
		r.PostFormValue("password"), c.knowsPassword(r))
	if err != nil {
		return c.secondWrong(r, err)
	}
	return show(secondTitle, recoveryPage(codes, false)), nil
}

func (c *Console) secondOff(r *request) (*answer, error) {
	err := c.Auth.EndTwoFactor(r.Context(), r.UserID(), r.who.Person(), r.PostFormValue("code"), r.PostFormValue("password"),
		c.knowsPassword(r))
	if err != nil {
		return c.secondWrong(r, err)
	}
	return see("/account", "second-off"), nil
}

// secondWrong shows what is wrong with a form of secondPage.
func (c *Console) secondWrong(r *request, err error) (*answer, error) {
	wrong, ok := passwordErrors(c.tooMany(r, err), "code")
	if !ok {
		return nil, err
	}
	return c.second(r, wrong)
}

// qrPath draws the black modules of a QR code, with the margin of four that readers need.
func qrPath(code *qr.Code) string {
	var b strings.Builder
	for y := range code.Size {
		for x := range code.Size {
			if code.Black(x, y) {
				fmt.Fprintf(&b, "M%d %dh1v1h-1z", x+4, y+4)
			}
		}
	}
	return b.String()
}

// qrBox is what an SVG of the code shows.
func qrBox(code *qr.Code) string { return fmt.Sprintf("0 0 %[1]d %[1]d", code.Size+8) }
