package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"parley/internal/simulator/phone"
)

// operate runs an operator's command on a program's data, and returns its output and whether it succeeded.
func (p *program) operate(t *testing.T, args ...string) (string, bool) {
	t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), p.env...)
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err == nil
}

// The operator's commands work while the server runs on the same data, and take effect at once.
func TestOperator(t *testing.T) {
	share(t, call)
	p := start(t)
	must := func(args ...string) string {
		t.Helper()
		out, ok := p.operate(t, args...)
		if !ok {
			t.Fatalf("%v failed: %s", args, out)
		}
		return out
	}
	must("user", "create", "--email", "Bo@Example.com", "--password", "a good password", "--balance", "2.50")
	must("user", "create", "--email", "poor@example.com", "--password", "a good password")
	if _, ok := p.operate(t, "user", "create", "--email", "bo@example.com", "--password", "a good password"); ok {
		t.Error("an address was taken twice")
	}
	bo := *p
	bo.Key = must("key", "create", "--user", "bo@example.com", "--name", "laptop")
	if strings.ContainsAny(bo.Key, " \n") || !strings.Contains(bo.Key, "|") {
		t.Fatalf("key create printed %q, not the token alone", bo.Key)
	}
	if got := bo.balance(t); got != 2.5 {
		t.Errorf("balance %v", got)
	}
	must("credit", "--user", "bo@example.com", "--amount", "1.25", "--reference", "invoice 7")
	must("credit", "--user", "bo@example.com", "--amount", "1.25", "--reference", "invoice 7")
	if got := bo.balance(t); got != 3.75 {
		t.Errorf("after the same payment twice: %v", got)
	}
	must("user", "plan", "--user", "bo@example.com", "--plan", "trial")
	if _, ok := p.operate(t, "user", "plan", "--user", "bo@example.com", "--plan", "gold"); ok {
		t.Error("an unknown plan was taken")
	}
	if list := must("user", "list"); !strings.Contains(list, "bo@example.com") ||
		!strings.Contains(list, "trial") || !strings.Contains(list, "0.00") {
		t.Errorf("user list:\n%s", list)
	}
	must("user", "password", "--user", "bo@example.com", "--password", "another password")
	login := func(password string) int {
		return p.call(t, "POST", "/login", map[string]any{"email": "bo@example.com", "password": password}, nil)
	}
	if old, now := login("a good password"), login("another password"); old != 401 || now != 200 {
		t.Errorf("login with the old password %d, with the new one %d", old, now)
	}
	for _, password := range []string{"password123", "weak@example.com", "short"} {
		if out, ok := p.operate(t, "user", "create", "--email", "weak@example.com", "--password", password); ok {
			t.Errorf("an account was made with the password %s: %s", password, out)
		}
	}
	for _, password := range []string{"password123", "bo@example.com", "short"} {
		if out, ok := p.operate(t, "user", "password", "--user", "bo@example.com", "--password", password); ok {
			t.Errorf("the password %s was taken: %s", password, out)
		}
	}
	second := bo
	second.Key = must("key", "create", "--user", "bo@example.com", "--name", "phone")
	if out := must("key", "revoke", "--user", "bo@example.com"); !strings.Contains(out, "2 API keys") {
		t.Errorf("key revoke printed %q", out)
	}
	for _, one := range []program{bo, second} {
		if status := one.call(t, "GET", "/user/me", nil, nil); status != 401 {
			t.Errorf("a revoked key: %d", status)
		}
	}
	bo.Key = must("key", "create", "--user", "bo@example.com", "--name", "laptop")
	must("user", "password", "--user", "bo@example.com", "--password", "a third password")
	if status := bo.call(t, "GET", "/user/me", nil, nil); status != 200 {
		t.Errorf("a key after a change of the password: %d", status)
	}
	must("user", "password", "--user", "bo@example.com", "--password", "a fourth password", "--revoke-keys")
	if status := bo.call(t, "GET", "/user/me", nil, nil); status != 401 {
		t.Errorf("a key that was to go with the password: %d", status)
	}
	bo.Key = must("key", "create", "--user", "bo@example.com", "--name", "laptop")
	must("user", "disable", "--user", "bo@example.com")
	if status := bo.call(t, "GET", "/user/me", nil, nil); status != 401 {
		t.Errorf("a disabled account's key: %d", status)
	}
	must("migrate")
	if out, ok := p.operate(t, "doctor"); !ok || !strings.Contains(out, "database") ||
		!strings.Contains(out, "PARLEY_OPENAI_API_KEY") {
		t.Errorf("doctor:\n%s", out)
	}
	file := filepath.Join(t.TempDir(), "copy.db")
	must("backup", file)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("backup: %v %v", info, err)
	}
	if _, ok := p.operate(t, "backup", file); ok {
		t.Error("a backup wrote over a file")
	}
	must("restore", "--check", file)
	if _, ok := p.operate(t, "restore", file); ok {
		t.Error("a copy was restored under a running server")
	}
	must("user", "create", "--email", "late@example.com", "--password", "a good password")
	p.stop(t)
	if out := must("restore", file); !strings.Contains(out, "is restored: 3 accounts, 0 calls") ||
		!strings.Contains(out, "parley.db.before-") {
		t.Errorf("restore:\n%s", out)
	}
	p.restart(t)
	if out := must("user", "list"); !strings.Contains(out, "poor@example.com") || strings.Contains(out, "late@example.com") {
		t.Errorf("accounts after the copy was restored:\n%s", out)
	}
	if status := p.call(t, "GET", "/user/me", nil, nil); status != 200 {
		t.Errorf("the first key after that: %d", status)
	}
}

// A trunk is checked while a server runs: the command reports one that answers, and fails for one that doesn't.
func TestTrunkCheckCommand(t *testing.T) {
	share(t, call)
	l := telephone(t)
	far := handset(t, phone.Options{})
	trunk := func(number, at string) string {
		var made struct{ Data struct{ ID int64 } }
		if status := l.call(t, "POST", "/user/phone-numbers/sip-trunks", map[string]any{"name": "Desk", "phone_number": number,
			"sip_address": at, "sip_username": "desk", "sip_password": "a secret", "register": true}, &made); status != http.StatusCreated {
			t.Fatalf("the trunk is answered %d", status)
		}
		return strconv.FormatInt(made.Data.ID, 10)
	}
	id := trunk("+4930901820", far.Addr().String())
	for _, name := range []string{id, "+4930901820", "+49 30 901820", far.Addr().String()} {
		out, ok := l.operate(t, "trunk", "check", name)
		for _, want := range []string{"ok    options", "note  registration", "note  nat"} {
			if !ok || !strings.Contains(out, want) {
				t.Errorf("%s: no %q in\n%s", name, want, out)
			}
		}
		if strings.Contains(out, "a secret") {
			t.Error("it tells the password")
		}
	}
	if out, ok := l.operate(t, "trunk", "check", trunk("+4930901821", "127.0.0.1:9")); ok ||
		!strings.HasPrefix(out, "FAIL  trunk           no answer") {
		t.Errorf("a trunk that is not there: %s", out)
	}
	if _, ok := l.operate(t, "trunk", "check", "999"); ok {
		t.Error("there is a trunk 999")
	}
}
