package api_test

import (
	"testing"
	"time"

	"parley/internal/auth"
	"parley/internal/parley"
	"parley/internal/totp"
)

// An account with a second factor signs in with a code, once; API keys don't need one.
func TestLoginWithACode(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.password("correct horse")
		none := header("Authorization", "")
		login := map[string]any{"email": h.user.Email, "password": "correct horse"}
		sessions := func() (n int) {
			list, err := h.db.KeysNamed(t.Context(), h.user.ID, parley.Session, "session", parley.Now())
			if err != nil {
				t.Fatal(err)
			}
			return len(list)
		}
		// without a second factor a code is nothing
		h.post("/login", with(login, map[string]any{"code": "123456"}), none, status(200))
		ok := func(string) error { return nil }
		if err := h.authority.SetUpTwoFactor(t.Context(), h.user.ID, auth.Owner); err != nil {
			t.Fatal(err)
		}
		f, err := h.db.TwoFactor(t.Context(), h.user.ID, auth.Owner)
		if err != nil {
			t.Fatal(err)
		}
		secret, err := h.db.TwoFactorSecret(f)
		if err != nil {
			t.Fatal(err)
		}
		h.post("/login", login, none, status(200)) // it is not confirmed
		step := totp.Step(time.Now())
		recovery, _, err := h.authority.ConfirmTwoFactor(t.Context(), h.user.ID, auth.Owner, totp.Code(secret, step), "", ok)
		if err != nil {
			t.Fatal(err)
		}
		if n := sessions(); n != 0 {
			t.Errorf("%d sessions from before go on", n)
		}
		for body, answer := range map[string]string{
			"":                      `{"message":"This account has two-factor sign-in: a code from the authenticator app is needed too."}`,
			"000":                   `{"message":"This code is wrong or has already been used."}`,
			totp.Code(secret, step): `{"message":"This code is wrong or has already been used."}`,
		} {
			h.post("/login", with(login, map[string]any{"code": body}), none, status(401)).is(answer)
		}
		// who does not know the password learns nothing of the code
		h.post("/login", with(login, map[string]any{"password": "x", "code": totp.Code(secret, step+1)}), none,
			status(401)).is(`{"message":"The email address or the password is wrong."}`)
		if n := sessions(); n != 0 {
			t.Errorf("%d sessions for refused sign-ins", n)
		}
		h.post("/login", with(login, map[string]any{"code": totp.Code(secret, step+1)}), none, status(200))
		h.post("/login", with(login, map[string]any{"code": recovery[0]}), none, status(200))
		h.post("/login", with(login, map[string]any{"code": recovery[0]}), none, status(401))
		h.get("/user/me", status(200)) // by the API key
		for _, v := range []any{5, true, []any{}} {
			h.post("/login", with(login, map[string]any{"code": v}), none, status(422)).fails("code")
		}
	})
}
