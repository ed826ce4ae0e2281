package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/mail"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/google/uuid"

	"parley/internal/auth"
	"parley/internal/billing"
	"parley/internal/parley"
	"parley/internal/store"
)

type userCmd struct {
	Create   userCreate   `cmd:"" help:"Create an account."`
	List     userList     `cmd:"" help:"List accounts."`
	Disable  userDisable  `cmd:"" help:"Disable an account: its credentials are refused at once."`
	Password userPassword `cmd:"" help:"Set a password; the account's sessions end, its API keys stay unless --revoke-keys."`
	Plan     userPlan     `cmd:"" help:"Set an account's plan."`
	Second   userSecond   `cmd:"" name:"two-factor" help:"Say whether an account has two-factor sign-in, or turn it off."`
	Operator userOperator `cmd:"" help:"Make an account an operator, who may enter the server's provider keys."`
}

// change opens the database and changes one account.
func change(t *terminal, s *Settings, email string, fn func(*auth.Authority, *parley.User) error) error {
	db, err := s.open(t)
	if err != nil {
		return err
	}
	u, err := db.UserByEmail(t, strings.ToLower(email))
	if err == nil {
		err = fn(&auth.Authority{DB: db}, u)
	}
	return errors.Join(err, db.Close())
}

type userCreate struct {
	Email    string `required:"" help:"Address to sign in with."`
	Password string `required:"" help:"At least 8 characters, and not easy to guess."`
	Name     string `help:"Name (the address)."`
	Balance  string `default:"0" help:"Opening balance in USD."`
	Plan     string `default:"default" help:"Plan."`
	Timezone string `help:"IANA time zone (that of the browser of the first sign-in; UTC until then)."`
}

func (c *userCreate) Run(s *Settings, t *terminal) error {
	balance, err := parley.ParseMoney(c.Balance)
	if err != nil {
		return err
	}
	u := &parley.User{Name: c.Name, Email: c.Email, Timezone: cmp.Or(c.Timezone, "UTC"), ZoneAssumed: c.Timezone == "", Plan: c.Plan}
	if u.Name == "" {
		u.Name = c.Email
	}
	if err := checkUser(s, u, c.Password); err != nil {
		return err
	}
	if balance < 0 {
		return errors.New("the balance must not be negative")
	}
	db, err := s.open(t)
	if err != nil {
		return err
	}
	err = (&auth.Authority{DB: db}).Create(t, u, c.Password, balance)
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	fmt.Fprintf(t.Out, "created user %d %s\n", u.ID, u.Email)
	return nil
}

// checkUser judges what an operator typed, and puts the address in lower case.
func checkUser(s *Settings, u *parley.User, password string) error {
	u.Email = strings.ToLower(strings.TrimSpace(u.Email))
	if a, err := mail.ParseAddress(u.Email); err != nil || a.Address != u.Email || len(u.Email) > 255 {
		return fmt.Errorf("%q is not an email address", u.Email)
	}
	if why := auth.WeakPassword(password, u.Name, u.Email); why != "" {
		return errors.New("the password " + strings.TrimSuffix(why, "."))
	}
	if !parley.ValidTimezone(u.Timezone) {
		return fmt.Errorf("%q is not an IANA time zone such as Europe/Berlin", u.Timezone)
	}
	return knownPlan(s, u.Plan)
}

func knownPlan(s *Settings, name string) error {
	p, err := s.prices()
	if err != nil {
		return err
	}
	if _, ok := p.Plans[name]; !ok {
		return fmt.Errorf("there is no plan %q: 'parley prices' prints the plans", name)
	}
	return nil
}

type userList struct{}

func (c *userList) Run(s *Settings, t *terminal) error {
	db, err := s.open(t)
	if err != nil {
		return err
	}
	list, err := db.Users(t)
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	w := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tEMAIL\tNAME\tPLAN\tBALANCE\tSTATE")
	for _, u := range list {
		state := "active"
		if u.DisabledAt != 0 {
			state = "disabled"
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\n", u.ID, u.Email, u.Name, u.Plan, u.Balance, state)
	}
	return w.Flush()
}

type userDisable struct {
	User string `required:"" help:"The account's address."`
	Undo bool   `help:"Enable the account again."`
}

func (c *userDisable) Run(s *Settings, t *terminal) error {
	return change(t, s, c.User, func(authority *auth.Authority,
		u *parley.User) error {
		return authority.Disable(t, u.ID, c.Undo)
	})
}

type userPassword struct {
	User       string `required:"" help:"The account's address."`
	Password   string `required:"" help:"At least 8 characters, and not easy to guess."`
	RevokeKeys bool   `help:"Revoke the account's API keys too: whoever knew the password may have made one."`
}

func (c *userPassword) Run(s *Settings, t *terminal) error {
	if why := auth.WeakPassword(c.Password, c.User); why != "" {
		return errors.New("the password " + strings.TrimSuffix(why, "."))
	}
	return change(t, s, c.User, func(authority *auth.Authority, u *parley.User) error {
		return authority.SetPassword(t, u.ID, c.Password, c.RevokeKeys)
	})
}

type userPlan struct {
	User string `required:"" help:"The account's address."`
	Plan string `required:"" help:"Plan."`
}

func (c *userPlan) Run(s *Settings, t *terminal) error {
	if err := knownPlan(s, c.Plan); err != nil {
		return err
	}
	return change(t, s, c.User, func(authority *auth.Authority,
		u *parley.User) error {
		return authority.SetPlan(t, u.ID, c.Plan)
	})
}

type userOperator struct {
	User string `required:"" help:"The account's address."`
	Undo bool   `help:"Remove the operator role."`
}

func (c *userOperator) Run(s *Settings, t *terminal) error {
	return change(t, s, c.User, func(authority *auth.Authority, u *parley.User) error {
		return authority.SetOperator(t, u.ID, !c.Undo)
	})
}

type userSecond struct {
	User string `required:"" help:"The account's address."`
	Off  bool   `help:"Turn it off, for an owner who has lost the app and the recovery codes."`
}

func (c *userSecond) Run(s *Settings, t *terminal) error {
	state := "on"
	err := change(t, s, c.User, func(authority *auth.Authority, u *parley.User) error {
		f, err := authority.TwoFactor(t, u.ID, auth.Owner)
		if err == nil && f != nil && c.Off {
			err = authority.DropTwoFactor(t, u.ID, auth.Owner)
		}
		if f == nil || c.Off {
			state = "off"
		}
		return err
	})
	if err == nil {
		fmt.Fprintf(t.Out, "two-factor sign-in is %s\n", state)
	}
	return err
}

type keyCmd struct {
	Create keyCreate `cmd:"" help:"Create an API key and print only its token."`
	Revoke keyRevoke `cmd:"" help:"Revoke all API keys of an account and disconnect its apps, at once."`
}

type keyRevoke struct {
	User string `required:"" help:"The account's address."`
}

func (c *keyRevoke) Run(s *Settings, t *terminal) error {
	var n int64
	err := change(t, s, c.User, func(authority *auth.Authority, u *parley.User) (err error) {
		n, err = authority.RevokeKeys(t, u.ID, 0)
		return err
	})
	if err == nil {
		fmt.Fprintf(t.Out, "revoked %d API keys\n", n)
	}
	return err
}

type keyCreate struct {
	User   string      `required:"" help:"The account's address."`
	Name   string      `required:"" help:"A label."`
	Scope  parley.Role `enum:",administrator,editor,agent,viewer,billing,auditor" default:"" help:"The role that the key is limited to: administrator, editor, agent, viewer, billing or auditor (all that its holder may)."`
	Member string      `help:"Email address of the member whose key it is (the owner's)."`
}

func (c *keyCreate) Run(s *Settings, t *terminal) error {
	var token string
	err := change(t, s, c.User, func(authority *auth.Authority, u *parley.User) (err error) {
		in := auth.KeyInput{Name: c.Name, Scope: c.Scope}
		if c.Member != "" {
			list, err := authority.DB.Members(t, u.ID)
			if err != nil {
				return err
			}
			i := slices.IndexFunc(list, func(m parley.Member) bool { return m.Email == strings.ToLower(c.Member) })
			if i < 0 {
				return fmt.Errorf("%s is not a member of this account", c.Member)
			}
			in.MemberID = list[i].ID
		}
		_, token, err = authority.MakeKey(t, &auth.Who{User: u}, &in)
		return err
	})
	if err == nil {
		fmt.Fprintln(t.Out, token)
	}
	return err
}

type creditCmd struct {
	User      string `required:"" help:"The account's address."`
	Amount    string `required:"" help:"USD, such as 12.50."`
	Reference string `help:"Your reference for this payment: the same reference is credited only once."`
}

func (c *creditCmd) Run(s *Settings, t *terminal) error {
	amount, err := parley.ParseMoney(c.Amount)
	if err != nil {
		return err
	}
	if amount == 0 {
		return errors.New("the amount is zero")
	}
	if c.Reference == "" {
		c.Reference = uuid.NewString()
	}
	var posted bool
	var after *parley.User
	err = change(t, s, c.User, func(authority *auth.Authority, u *parley.User) (err error) {
		after, posted, err = authority.Credit(t, u.ID, amount, c.Reference)
		return err
	})
	switch {
	case err != nil:
		return err
	case !posted:
		fmt.Fprintf(t.Out, "%s was credited before; balance %s USD\n", c.Reference, after.Balance.Text())
	default:
		fmt.Fprintf(t.Out, "balance %s USD\n", after.Balance.Text())
	}
	return nil
}

type migrateCmd struct{}

func (c *migrateCmd) Run(s *Settings, t *terminal) error {
	o, err := s.dbOptions()
	if err != nil {
		return err
	}
	db, err := store.Open(t, o)
	if err != nil {
		return err
	}
	n, err := db.Migrate(t)
	if err = errors.Join(err, db.Close()); err == nil {
		fmt.Fprintf(t.Out, "%d migrations applied; the schema is up to date\n", n)
	}
	return err
}

type backupCmd struct {
	File string `arg:"" help:"File to write; it must not exist."`
}

func (c *backupCmd) Run(s *Settings, t *terminal) error {
	o, err := s.dbOptions()
	if err != nil {
		return err
	}
	db, err := store.Open(t, o)
	if err != nil {
		return err
	}
	if err := errors.Join(db.Backup(t, c.File), db.Close()); err != nil {
		return err
	}
	fmt.Fprintf(t.Out, "wrote %s\n", c.File)
	if s.SecretKey == "" {
		fmt.Fprintf(t.Out, "keep %s/secret.key with it: without that key the secrets in the copy can't be read\n",
			strings.TrimSuffix(s.Data, "/"))
	}
	return nil
}

type restoreCmd struct {
	File  string `arg:"" help:"Copy that parley backup wrote."`
	Check bool   `env:"-" help:"Only examine the copy: whether it is complete, and fits this program and its secret key."`
}

func (c *restoreCmd) Run(s *Settings, t *terminal) error {
	if s.Database != "" {
		return errors.New("this database is PostgreSQL: restore it with pg_restore")
	}
	if key := filepath.Join(s.Data, "secret.key"); s.SecretKey == "" { // a new one would be made, and open nothing
		if _, err := os.Stat(key); err != nil {
			return fmt.Errorf("the secrets in the copy need its key: put the secret.key that belongs to it to %s, or set PARLEY_SECRET_KEY", key)
		}
	}
	o, err := s.dbOptions()
	if err != nil {
		return err
	}
	fmt.Fprintf(t.Notes, "examining %s …\n", c.File)
	var found store.Copy
	former, done := "", "is complete"
	if c.Check {
		found, err = store.Examine(t, o, c.File)
	} else {
		done = "is restored"
		found, former, err = store.Restore(t, o, c.File)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(t.Out, "%s %s: %s, %s\n", c.File, done, counted(found.Accounts, "account"), counted(found.Calls, "call"))
	if found.Older {
		fmt.Fprintln(t.Out, "an older version of Parley made it: the next start brings its schema up to date")
	}
	if found.Running > 0 {
		fmt.Fprintf(t.Out, "%s will go on when the server starts, and may call people again who were called since the copy was made\n",
			counted(found.Running, "running campaign"))
	}
	if c.Check {
		return nil
	}
	if former != "" {
		fmt.Fprintf(t.Out, "the former database is kept as %s\n", former)
	}
	fmt.Fprintln(t.Out, "recordings and uploads are not in it: put blobs back too, then start the server")
	return nil
}

// counted is a number with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

type pricesCmd struct{}

func (c *pricesCmd) Run(s *Settings, t *terminal) error {
	_, err := t.Out.Write(billing.DefaultFile())
	return err
}
