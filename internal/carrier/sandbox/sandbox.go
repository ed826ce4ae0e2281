// Package sandbox is the carrier of a server that has no other: a fixed stock of numbers in each country, and an outbox
// in place of a network. Nothing leaves the machine. The last four digits of a message's recipient decide what becomes
// of it.
package sandbox

import (
	"context"
	"fmt"
	"strings"

	"parley/internal/carrier"
	"parley/internal/parley"
)

// The last four digits of recipients whose messages meet a fate of their own.
const (
	Fails       = "0001" // the carrier refuses it
	Undelivered = "0002" // the carrier takes it and can't deliver it
)

// sender is whom messages come from that name nobody.
const sender = "+12025550100"

// Outbox keeps a message, once per reference, and sees to it that its fate is reported. It returns the message's sid.
type Outbox func(ctx context.Context, m carrier.SMS, fate parley.SMSStatus) (sid string, err error)

// Carrier is the sandbox.
type Carrier struct{ keep Outbox }

// New makes a sandbox that keeps its messages in an outbox.
func New(keep Outbox) *Carrier { return &Carrier{keep} }

// Search finds numbers of the stock.
func (c *Carrier) Search(_ context.Context, country, contains string) ([]carrier.Number, error) {
	list := []carrier.Number{}
	for _, s := range stock[country] {
		for i := range s.count {
			n := fmt.Sprintf(s.format, s.first+i*s.step)
			if strings.Contains(n, contains) {
				list = append(list, carrier.Number{PhoneNumber: n, CountryCode: country,
					AddressRequirements: s.address, SMSCapable: s.sms})
			}
		}
	}
	return list, nil
}

// Buy rents a number of the stock. The sandbox remembers nothing: the caller knows who has which number.
func (c *Carrier) Buy(ctx context.Context, number string) error {
	list, _ := c.Search(ctx, parley.PhoneCountry(number), number[1:])
	for _, n := range list {
		if n.PhoneNumber == number {
			return nil
		}
	}
	return &carrier.Error{Message: "The sandbox has no number " + number + ".", Taken: true}
}

// Release gives a number back.
func (c *Carrier) Release(context.Context, string) error { return nil }

// Send puts a message into the outbox.
func (c *Carrier) Send(ctx context.Context, m carrier.SMS) (string, error) {
	if m.From == "" {
		m.From = sender
	}
	fate := parley.SMSDelivered
	switch {
	case strings.HasSuffix(m.To, Fails):
		return "", &carrier.Error{Code: 30001, Message: "The sandbox refuses messages to numbers that end in " +
			Fails + "."}
	case strings.HasSuffix(m.To, Undelivered):
		fate = parley.SMSUndelivered
	}
	return c.keep(ctx, m, fate)
}

// SendsOnce says that the outbox keeps a message once.
func (c *Carrier) SendsOnce() {}

// series is a run of numbers: format with first, first+step, ….
type series struct {
	format             string
	first, step, count int
	sms                bool
	address            string
}

// stock is what can be rented, in every country that the product rents in. Where a country keeps numbers for fiction
// they are those (555-01xx in North America, Ofcom's and the ACMA's drama ranges); elsewhere they are runs in ranges
// of the right kind. Mobile numbers take text messages everywhere, geographic ones in North America alone, as at real
// carriers.
var stock = map[string][]series{
	"US": {
		{"+1202555%04d", 101, 1, 49, true, "none"},
		{"+1212555%04d", 100, 1, 50, true, "none"},
		{"+1305555%04d", 100, 1, 50, true, "none"},
		{"+1312555%04d", 100, 1, 50, true, "none"},
		{"+1415555%04d", 100, 1, 50, true, "none"},
		{"+1646555%04d", 100, 1, 50, true, "none"},
	},
	"CA": {
		{"+1416555%04d", 100, 1, 50, true, "none"},
		{"+1514555%04d", 100, 1, 50, true, "none"},
		{"+1604555%04d", 100, 1, 50, true, "none"},
	},
	"GB": {
		{"+447400123%03d", 4, 17, 50, true, "none"},
		{"+44207946%04d", 3, 19, 50, false, "none"},
		{"+44161496%04d", 7, 19, 50, false, "none"},
	},
	"AU": {
		{"+61491570%03d", 6, 13, 50, true, "foreign"},
		{"+6125550%04d", 11, 97, 50, false, "local"},
		{"+6139010%04d", 23, 97, 50, false, "local"},
	},
	"IL": {
		{"+972525550%03d", 12, 17, 50, true, "none"},
		{"+97233700%03d", 9, 17, 50, false, "foreign"},
	},
	"PL": {
		{"+48732100%03d", 5, 17, 50, true, "foreign"},
		{"+48225550%03d", 8, 17, 50, false, "local"},
	},
	"FI": {
		{"+358457300%04d", 31, 97, 50, true, "foreign"},
		{"+35894245%04d", 14, 97, 50, false, "local"},
	},
	"NL": {
		{"+31970102%05d", 77, 997, 50, true, "foreign"},
		{"+31202105%03d", 6, 17, 50, false, "local"},
	},
	"DK": {
		{"+45527100%02d", 0, 1, 50, true, "none"},
		{"+45898700%02d", 0, 1, 50, false, "none"},
	},
	"IT": {
		{"+393755550%03d", 2, 17, 50, true, "inventory"},
		{"+39065550%04d", 19, 97, 50, false, "local"},
	},
}
