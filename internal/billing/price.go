// Package billing knows the prices and plans, which are in a file. Money moves in the store (Tx.Post, Tx.Reserve).
package billing

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"parley/internal/parley"
)

//go:embed prices.yaml
var defaults []byte

// Prices is the prices and plans file, read.
type Prices struct {
	Plans    map[string]parley.Plan
	Messages map[string]parley.Money // a customer's message, by type of conversation
	Numbers  map[string]NumberPrice  // by country: those that numbers can be rented in
	SMS      map[string]parley.Money // a segment, by country of destination; "default" for those that are not there

	Calls CallPrices

	Vendors map[string]parley.VendorPrice // what the operator pays: by vendor, or vendor/model

	LowBalance parley.Money // accounts are told when their balance falls below it
}

// CallPrices are what calls cost.
type CallPrices struct {
	Assistant parley.Money // a minute of conversation, charged by the second
	Trunk     parley.Money // a started minute over a trunk of the user's own
	// a started minute over the carrier, by country of destination; "default" for those that are not there
	Outbound map[string]parley.Money
	// a started minute that comes in over the carrier, by the number's country; likewise
	Inbound map[string]parley.Money
}

// NumberPrice is what a phone number costs.
type NumberPrice struct {
	Rent          parley.Money // a month
	StripePriceID string       // what the operator's billing calls it, "" without one
}

// Segment is the price of a segment of a text message to a country (ISO 3166-1 alpha-2).
func (p *Prices) Segment(country string) parley.Money { return of(p.SMS, country) }

// Outbound is the price of a started minute of a call over the carrier to a country (ISO 3166-1 alpha-2).
func (p *Prices) Outbound(country string) parley.Money { return of(p.Calls.Outbound, country) }

// Inbound is the price of a started minute of a call that comes in over the carrier to a number of a country.
func (p *Prices) Inbound(country string) parley.Money { return of(p.Calls.Inbound, country) }

// Vendor is what the operator pays for a vendor's model: its own price, or the vendor's.
func (p *Prices) Vendor(vendor, model string) parley.VendorPrice {
	if price, ok := p.Vendors[vendor+"/"+model]; ok {
		return price
	}
	return p.Vendors[vendor]
}

func of(prices map[string]parley.Money, country string) parley.Money {
	if m, ok := prices[country]; ok {
		return m
	}
	return prices["default"]
}

// file is how prices.yaml is written.
type file struct {
	Plans    map[string]map[string]*int `yaml:"plans"`
	Messages map[string]amount          `yaml:"messages"`
	Numbers  map[string]struct {
		Rent          *amount `yaml:"rent"`
		StripePriceID *string `yaml:"stripe_price_id"`
	} `yaml:"numbers"`
	SMS   map[string]amount `yaml:"sms"`
	Calls struct {
		Assistant *amount           `yaml:"assistant"`
		Trunk     *amount           `yaml:"trunk"`
		Outbound  map[string]amount `yaml:"outbound"`
		Inbound   map[string]amount `yaml:"inbound"`
	} `yaml:"calls"`
	LowBalance *amount `yaml:"low_balance"`
	Vendors    map[string]struct {
		Input       *amount `yaml:"input"`
		Cached      *amount `yaml:"cached"`
		Output      *amount `yaml:"output"`
		AudioInput  *amount `yaml:"audio_input"`
		AudioCached *amount `yaml:"audio_cached"`
		AudioOutput *amount `yaml:"audio_output"`
		Characters  *amount `yaml:"characters"`
		Minute      *amount `yaml:"minute"`
	} `yaml:"vendors"`
}

// amount is USD in the file.
type amount parley.Money

func (a *amount) UnmarshalYAML(n *yaml.Node) error {
	m, err := parley.ParseMoney(n.Value)
	if err == nil && m < 0 {
		err = fmt.Errorf("%s is negative", n.Value)
	}
	if err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	*a = amount(m)
	return nil
}

// DefaultFile is the commented file with the embedded defaults.
func DefaultFile() []byte { return bytes.Clone(defaults) }

// ReadPrices reads the prices and plans file over the embedded defaults; path "" is the defaults alone.
func ReadPrices(path string) (*Prices, error) {
	p := &Prices{Plans: map[string]parley.Plan{}, Messages: map[string]parley.Money{},
		Numbers: map[string]NumberPrice{}, SMS: map[string]parley.Money{},
		Vendors: map[string]parley.VendorPrice{}, Calls: CallPrices{Outbound: map[string]parley.Money{}, Inbound: map[string]parley.Money{}}}
	if err := p.add(defaults); err != nil {
		return nil, fmt.Errorf("embedded prices: %w", err)
	}
	if path == "" {
		return p, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the prices file: %w", err)
	}
	if err := p.add(text); err != nil {
		return nil, fmt.Errorf("prices file %s: %w", path, err)
	}
	return p, nil
}

// add lays one file over what is there.
func (p *Prices) add(text []byte) error {
	var f file
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true) // a misspelt price must not silently be the default
	if err := dec.Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	// a new plan begins as the default one stands in the end
	for _, name := range append([]string{parley.DefaultPlan}, slices.Sorted(maps.Keys(f.Plans))...) {
		out, known := p.Plans[name]
		if !known {
			out = p.Plans[parley.DefaultPlan]
		}
		limits := out.Limits()
		for limit, n := range f.Plans[name] {
			switch {
			case limits[limit] == nil:
				return fmt.Errorf("plan %s: there is no limit %q; those there are: %s", name, limit,
					strings.Join(slices.Sorted(maps.Keys(limits)), ", "))
			case n == nil:
			case *n < 0 || *n < 1 && parley.LimitNamed(limit).Span == parley.Together:
				return fmt.Errorf("plan %s: parallel_calls, requests_together and streams must be at least 1, the other limits not negative", name)
			default:
				*limits[limit] = *n
			}
		}
		p.Plans[name] = out
	}
	for name, a := range f.Messages {
		if _, known := p.Messages[name]; !known && !bytes.Equal(text, defaults) {
			return fmt.Errorf("messages: %q is not a type of conversation", name)
		}
		p.Messages[name] = parley.Money(a)
	}
	for country, n := range f.Numbers {
		price, known := p.Numbers[country]
		if !known && !bytes.Equal(text, defaults) {
			return fmt.Errorf("numbers: no numbers are rented in %q", country)
		}
		if n.Rent != nil {
			price.Rent = parley.Money(*n.Rent)
		}
		if n.StripePriceID != nil {
			price.StripePriceID = *n.StripePriceID
		}
		p.Numbers[country] = price
	}
	for _, one := range []struct {
		to   *parley.Money
		from *amount
	}{{&p.LowBalance, f.LowBalance}, {&p.Calls.Assistant, f.Calls.Assistant}, {&p.Calls.Trunk, f.Calls.Trunk}} {
		if one.from != nil {
			*one.to = parley.Money(*one.from)
		}
	}
	for name, v := range f.Vendors {
		p.Vendors[name] = parley.VendorPrice{Input: (*parley.Money)(v.Input), Cached: (*parley.Money)(v.Cached),
			Output: (*parley.Money)(v.Output), AudioInput: (*parley.Money)(v.AudioInput), AudioCached: (*parley.Money)(v.AudioCached),
			AudioOutput: (*parley.Money)(v.AudioOutput), Characters: (*parley.Money)(v.Characters),
			Minute: (*parley.Money)(v.Minute)}
	}
	return errors.Join(byCountry("sms", p.SMS, f.SMS), byCountry("calls.outbound", p.Calls.Outbound, f.Calls.Outbound),
		byCountry("calls.inbound", p.Calls.Inbound, f.Calls.Inbound))
}

// byCountry lays prices by country over those that are there.
func byCountry(name string, to map[string]parley.Money, from map[string]amount) error {
	for country, a := range from {
		if country != "default" && (len(country) != 2 || strings.ToUpper(country) != country) {
			return fmt.Errorf("%s: %q is neither a country code such as US nor default", name, country)
		}
		to[country] = parley.Money(a)
	}
	return nil
}

// Plan is what an account of that plan may have; an unknown plan is the default one.
func (p *Prices) Plan(name string) parley.Plan {
	if plan, ok := p.Plans[name]; ok {
		return plan
	}
	return p.Plans[parley.DefaultPlan]
}
