package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/riverqueue/river"

	"parley/internal/channel"
	"parley/internal/channel/sms"
	"parley/internal/channel/whatsapp"
	"parley/internal/chat"
)

// allChannels declares every channel by which messages come and go, with settings that nobody has filled in yet: the
// one list.
func allChannels() []*channel.Declaration {
	return []*channel.Declaration{
		sms.Declare(),
		whatsapp.Declare(&whatsapp.Settings{}),
	}
}

// channels are those that are open.
type channels []channel.Channel

// openChannels opens every channel.
func (s *Settings) openChannels(h channel.House) (list channels, err error) {
	for _, d := range s.channels {
		c, err := d.Open(h)
		if err != nil {
			list.Close()
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}

// replied are how each channel sends replies.
func (list channels) replied() (all []chat.Replied) {
	for _, c := range list {
		all = append(all, c.Replied)
	}
	return all
}

func (list channels) AddWorkers(w *river.Workers) {
	for _, c := range list {
		c.AddWorkers(w)
	}
}

func (list channels) Periodic() (jobs []*river.PeriodicJob) {
	for _, c := range list {
		jobs = append(jobs, c.Periodic()...)
	}
	return jobs
}

func (list channels) Close() {
	for _, c := range list {
		c.Close()
	}
}

// the is the one of a type, which is always there.
func the[C channel.Channel](list channels) C {
	i := slices.IndexFunc(list, func(c channel.Channel) bool { _, ok := c.(C); return ok })
	return list[i].(C)
}

type whatsAppCmd struct {
	Assign whatsAppAssign `cmd:"" help:"Assign a sender of the WhatsApp account to a user."`
}

type whatsAppAssign struct {
	Sender string `required:"" help:"The sender's phone number."`
	User   string `required:"" help:"The account's address."`
}

func (c *whatsAppAssign) Run(s *Settings, t *terminal) (err error) {
	db, err := s.open(t)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	open, err := s.openChannels(channel.House{DB: db})
	if err != nil {
		return err
	}
	defer open.Close()
	w := the[*whatsapp.Channel](open)
	u, err := db.UserByEmail(t, strings.ToLower(c.User))
	if err != nil {
		return err
	}
	sender, err := w.Assign(t, c.Sender, u.ID)
	if err != nil {
		return err
	}
	fmt.Fprintf(t.Out, "%s (%s) belongs to %s\n", sender.PhoneNumber, sender.DisplayName, u.Email)
	return nil
}
