package rehearsal

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// read reads a case.
func (c *Case) read(n *yaml.Node) error {
	c.Line = n.Line
	var steps *yaml.Node
	err := object(n, "a case",
		parsed("name", &c.Name, text),
		parsed("call", &c.Assistant, text),
		field{"called_by", c.readCalledBy},
		parsed("pickup", &c.Pickup, pickup),
		parsed("channel", &c.Channel, oneOf(Call, Chat)),
		parsed("now", &c.Now, parseNow),
		field{"variables", func(n *yaml.Node) error { return values(n, &c.Variables) }},
		field{"line", c.Sound.read},
		field{"caller", c.Caller.read},
		parsed("ears", &c.Ears, oneOf(Real, Told)),
		field{"mock", c.readMocks},
		field{"matrix", c.readMatrix},
		parsed("seed", &c.Seed, func(s string) (uint64, error) { n, err := count(1 << 30)(s); return uint64(n), err }),
		parsed("repeat", &c.Repeat, count(1000)),
		parsed("limit", &c.Limit, parseDuration),
		field{"steps", func(n *yaml.Node) error { steps = n; return c.readSteps(n) }},
		field{"end", c.readEnd},
		field{"budget", c.Budget.read},
		field{"judge", func(n *yaml.Node) error {
			return items(n, func(n *yaml.Node) error {
				s, err := scalar(n)
				c.Criteria = append(c.Criteria, Criterion{n.Line, s})
				return err
			})
		}})
	switch {
	case err != nil:
		return err
	case c.Assistant == "":
		return mistake(n, `a case needs "call": the name, id or file of an assistant; or "called_by", for one that calls`)
	case steps == nil && c.Caller.Persona == "" && c.Pickup.answers():
		return mistake(n, `a case needs "steps": what is heard and said`)
	case c.Repeat == 0 || c.Limit == 0:
		return mistake(n, "repeat and limit must be more than 0")
	}
	return c.check()
}

// readCalledBy reads the assistant that calls.
func (c *Case) readCalledBy(n *yaml.Node) (err error) {
	if c.Assistant != "" {
		return errors.New("a case has call, which the caller does, or called_by, where the assistant calls: not both")
	}
	c.Outbound = true
	c.Assistant, err = scalar(n)
	return err
}

// pickup reads 2s, or why nobody answers.
func pickup(s string) (p Pickup, err error) {
	switch s {
	case "busy":
		p.Refuse = 486
	case "declined":
		p.Refuse = 603
	case "never":
		p.Never = true
	default:
		if p.After, err = parseDuration(s); err != nil {
			err = fmt.Errorf("%q is neither a time such as 2s, nor busy, declined or never", s)
		}
	}
	return p, err
}

func (p Pickup) answers() bool { return p.Refuse == 0 && !p.Never }

// check looks at what depends on several fields.
func (c *Case) check() error {
	at := func(line int, format string, args ...any) error {
		return &Mistake{Line: line, Text: fmt.Sprintf(format, args...)}
	}
	switch {
	case c.Outbound && c.Channel == Chat:
		return at(c.Line, "called_by needs a call, and this is a chat")
	case !c.Outbound && c.Pickup != (Pickup{}):
		return at(c.Line, "pickup is for who is called: it goes with called_by")
	case c.End != nil && c.End.Rings != nil && !c.Outbound:
		return at(c.End.Line, "rings_at_most is for who is called: it goes with called_by")
	case c.Channel == Chat &&
		(c.Budget.Pace != nil || c.End != nil && (c.End.Recorded != nil || c.End.Shortest != nil || c.End.Detail != nil || c.End.Webhook != nil)):
		return at(c.Line, "recorded, detail, webhook, lasts_at_least and words_per_minute need a call, and this is a chat")
	case !c.Pickup.answers() && (len(c.Steps) > 0 || c.Caller.Persona != ""):
		return at(c.Line, "nobody answers this call, so it has no steps and no persona")
	}
	if c.Stranger() {
		if _, _, err := sipAddress(c.Assistant); err != nil {
			return at(c.Line, "%v", err)
		}
		if err := c.checkStranger(); err != nil {
			return err
		}
	}
	acted := false
	for i, s := range c.Steps {
		sound := s.Kind == Interrupt || s.Kind == Backchannel || s.Kind == Press || s.Kind == Beep || s.Kind == Music
		switch {
		case c.Channel == Chat && sound:
			return at(s.Line, "%s needs a call, and this is a chat: allowed are say, hear, expect", s.Kind)
		case s.Kind == Expecting && i == 0:
			return at(s.Line, "expect says what comes of the step before it, and this is the first one")
		case s.Kind == Expecting && s.Expect.needsSpeech() && !acted:
			return at(s.Line, "silent_within, resumes_within, stale_packets and no_reply_during are judged after something is said")
		case c.Channel == Chat && s.Kind == Expecting && s.Expect.needsSound():
			return at(s.Line, "silent_within, resumes_within, stale_packets, no_reply_during, keys and transferred need a call, and this is a chat")
		case s.Kind == HangUp && i != len(c.Steps)-1 && c.Steps[i+1].Kind != Expecting:
			return at(c.Steps[i+1].Line, "nothing but expect can follow hang_up")
		}
		acted = acted || s.acts()
	}
	return nil
}

// sipAddress reads sip:echo@127.0.0.1:5070.
func sipAddress(s string) (user string, at netip.AddrPort, err error) {
	user, host, ok := strings.Cut(strings.TrimPrefix(s, "sip:"), "@")
	if !strings.Contains(host, ":") {
		host += ":5060"
	}
	if at, err = netip.ParseAddrPort(host); !ok || err != nil || !at.Addr().IsLoopback() {
		return "", at, fmt.Errorf("%q is not a SIP address on this machine such as sip:echo@127.0.0.1:5070", s)
	}
	return user, at, nil
}

// checkStranger refuses what can't be judged of a call to a SIP address.
func (c *Case) checkStranger() error {
	at := func(line int, what string) error {
		return &Mistake{Line: line, Text: what + " needs an assistant of a Parley server: of a sip: address only the sound is known"}
	}
	if e := c.End; e != nil && (e.Recorded != nil || e.Detail != nil || e.Webhook != nil || e.Rings != nil) {
		return at(e.Line, "recorded, detail, webhook or rings_at_most")
	}
	if c.Budget.Pace != nil {
		return at(c.Budget.Line, "words_per_minute")
	}
	switch e := c.End; {
	case c.Outbound || c.Channel == Chat:
		return at(c.Line, "called_by or a chat")
	case len(c.Mocks) > 0 || len(c.Variables) > 0 || !c.Now.IsZero():
		return at(c.Line, "mock, variables or now")
	case c.Caller.Persona != "" || len(c.Criteria) > 0:
		return at(c.Line, "a persona or judge")
	case c.Budget.Misheard != nil:
		return at(c.Budget.Line, "misheard")
	case e != nil && (len(e.Variables) > 0 || e.CostBelow != nil || e.exact || e.Reason != ""):
		return at(e.Line, "reason, variables, cost_below or tools")
	}
	for _, s := range c.Steps {
		e := &s.Expect
		switch {
		case s.Kind == Hear && s.Want != nil:
			return at(s.Line, "hear with words")
		case len(e.Tools)+len(e.NoTools)+len(e.Says)+len(e.SaysNot)+len(e.Heard) > 0:
			return at(s.Line, "tool, no_tool, says, says_not or heard")
		}
	}
	return nil
}

// acts says whether the caller does something in a step.
func (s *Step) acts() bool {
	return s.Kind == Say || s.Kind == Interrupt || s.Kind == Backchannel || s.Kind == Press || s.Kind == Beep || s.Kind == Music
}

func (e *Expect) needsSpeech() bool {
	return e.SilentIn != nil || e.ResumesIn != nil || e.Stale != nil || e.Quiet != ""
}

func (e *Expect) needsSound() bool { return e.needsSpeech() || e.Keys != nil || e.Transferred != nil }

func (s *Sound) read(n *yaml.Node) error {
	return object(n, "line",
		parsed("codec", &s.Codec, codec),
		parsed("loss", &s.Loss, parsePercent),
		parsed("jitter", &s.Jitter, jitter),
		parsed("echo", &s.Echo, parseEcho),
		parsed("noise", &s.Noise, parseNoise))
}

func codec(s string) (string, error) { return oneOf("pcmu", "pcma", "g722")(s) }

func jitter(s string) (time.Duration, error) {
	d, err := parseDuration(s)
	if err == nil && d > time.Second {
		err = fmt.Errorf("%q is more than a second", s)
	}
	return d, err
}

func parseEcho(s string) (float64, error) {
	db, err := parseDecibels(s)
	if err == nil && db >= 0 {
		err = fmt.Errorf("%q is as loud as the voice: an echo is below it, such as -18dB", s)
	}
	return db, err
}

func (c *Caller) read(n *yaml.Node) error {
	return object(n, "caller", parsed("voice", &c.Voice, text), parsed("pace", &c.Pace, pace),
		parsed("persona", &c.Persona, text), parsed("turns", &c.Turns, count(maxTurns)))
}

// values reads a mapping of texts.
func values(n *yaml.Node, to *map[string]string) error {
	if n.Kind != yaml.MappingNode {
		return mistake(n, "values must be written as name: value")
	}
	*to = map[string]string{}
	for i := 0; i < len(n.Content); i += 2 {
		s, err := scalar(n.Content[i+1])
		if err != nil {
			return err
		}
		(*to)[n.Content[i].Value] = s
	}
	return nil
}

func (c *Case) readMocks(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return mistake(n, "mock must be written as tool: {reply: …}")
	}
	for i := 0; i < len(n.Content); i += 2 {
		m := Mock{Tool: n.Content[i].Value}
		if value := n.Content[i+1]; value.Kind == yaml.ScalarNode {
			if value.Value != "real" {
				return mistake(value, "%q: a mock is {reply: …, after: 1.5s, fails: …}, or real, which asks the tool's endpoint", value.Value)
			}
			m.Real = true
		} else if err := object(value, "a mock",
			field{"reply", func(n *yaml.Node) (err error) { m.Reply, err = reply(n); return err }},
			parsed("after", &m.After, parseDuration),
			parsed("fails", &m.Fails, text)); err != nil {
			return err
		}
		c.Mocks = append(c.Mocks, m)
	}
	return nil
}

func (c *Case) readSteps(n *yaml.Node) error {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		return mistake(n, "steps must be a list, such as - say: hello")
	}
	for _, one := range n.Content {
		s := Step{Line: one.Line}
		fields := []field{}
		for _, kind := range []Kind{Hear, Say, Interrupt, Backchannel, Press, Beep, Music, Wait, HangUp, Expecting} {
			fields = append(fields, field{string(kind), func(n *yaml.Node) error {
				s.Kind = kind
				return s.read(n)
			}})
		}
		if one.Kind == yaml.ScalarNode && (one.Value == string(HangUp) || one.Value == string(Beep)) {
			c.Steps = append(c.Steps, Step{Line: one.Line, Kind: Kind(one.Value)})
			continue
		}
		if one.Kind == yaml.MappingNode && len(one.Content) > 2 {
			return mistake(one.Content[2], "a step is one thing: begin %q with a - of its own", one.Content[2].Value)
		}
		if err := object(one, "a step", fields...); err != nil {
			return err
		}
		c.Steps = append(c.Steps, s)
	}
	return nil
}

// read reads a step's value, whose kind is known.
func (s *Step) read(n *yaml.Node) (err error) {
	switch s.Kind {
	case Expecting:
		return s.Expect.read(n)
	case Hear:
		return s.readHear(n)
	case HangUp, Beep:
		if n.Kind == yaml.ScalarNode && (n.Tag == "!!null" || n.Value == "true") {
			return nil
		}
		if s.Kind == Beep {
			return errors.New("a beep is written alone: - beep")
		}
	case Wait, Music:
		v, err := scalar(n)
		if err == nil {
			s.Wait, err = parseDuration(v)
		}
		return err
	}
	at := ""
	if n.Kind == yaml.MappingNode {
		if err := object(n, string(s.Kind), parsed("say", &s.Text, text), parsed("at", &at, text),
			parsed("voice", &s.Voice, text)); err != nil {
			return err
		}
	} else {
		if s.Text, err = scalar(n); err != nil {
			return err
		}
		if i := strings.LastIndex(s.Text, " at reply"); i >= 0 && s.Kind != Press {
			s.Text, at = s.Text[:i], s.Text[i+len(" at "):]
		} else if s.Kind == HangUp {
			at, s.Text = strings.TrimPrefix(s.Text, "at "), ""
		}
	}
	s.Text = unquoted(s.Text)
	if at != "" {
		s.Timed = true
		if s.Offset, err = parseAt(at); err != nil {
			return err
		}
	}
	switch s.Kind {
	case HangUp:
		return nil
	case Press:
		if s.Text == "" || strings.Trim(s.Text, "0123456789*#ABCD") != "" {
			return fmt.Errorf("%q are no keys: 0-9, *, # and A-D are", s.Text)
		}
		return nil
	}
	if (s.Kind == Interrupt || s.Kind == Backchannel) && !s.Timed {
		return fmt.Errorf("%s needs a moment: %q at reply+600ms", s.Kind, s.Text)
	}
	s.Parts, err = parseSpeech(s.Text)
	return err
}

// readHear reads "greeting within 400ms", or {text: …, within: …}.
func (s *Step) readHear(n *yaml.Node) (err error) {
	what := ""
	if n.Kind == yaml.MappingNode {
		if err := object(n, "hear", parsed("text", &what, text), parsed("within", &s.Within, parseDuration)); err != nil {
			return err
		}
	} else {
		if what, err = scalar(n); err != nil {
			return err
		}
		if i := strings.LastIndex(" "+what, " within "); i >= 0 {
			if s.Within, err = parseDuration(what[i+len("within "):]); err != nil {
				return err
			}
			what = strings.TrimSpace(what[:max(i-1, 0)])
		}
	}
	s.Text = unquoted(what)
	if s.Text == "greeting" || s.Text == "reply" || s.Text == "" {
		return nil
	}
	w, err := parseWords(s.Text)
	s.Want = &w
	return err
}

func (e *Expect) read(n *yaml.Node) error {
	tool := func(s string, n *yaml.Node) error {
		p, err := parseTool(s)
		e.Tools = append(e.Tools, p)
		return err
	}
	words := func(to *[]Words) func(*yaml.Node) error {
		return func(n *yaml.Node) error {
			return items(n, func(n *yaml.Node) error {
				s, err := scalar(n)
				if err != nil {
					return err
				}
				w, err := parseWords(s)
				*to = append(*to, w)
				return err
			})
		}
	}
	if n.Kind == yaml.MappingNode && len(n.Content) == 0 {
		return errors.New("expect checks nothing: it needs something such as {says: booked} or {tool: book}")
	}
	return object(n, "expect",
		field{"tool", func(n *yaml.Node) error {
			return items(n, func(n *yaml.Node) error {
				s, err := scalar(n)
				if err != nil {
					return err
				}
				return tool(s, n)
			})
		}},
		field{"no_tool", func(n *yaml.Node) error {
			return items(n, func(n *yaml.Node) error {
				s, err := scalar(n)
				switch {
				case err != nil:
					return err
				case s == "true" || s == "any":
					s = "*"
				case s == "false" || s == "":
					return fmt.Errorf("no_tool is true, the name of a tool or a list of names, not %q: leave it out where tools may be called", s)
				}
				e.NoTools = append(e.NoTools, s)
				return nil
			})
		}},
		parsed("no_reply_during", &e.Quiet, oneOf("pause", "music")),
		optional("silent_within", &e.SilentIn, parseDuration),
		optional("resumes_within", &e.ResumesIn, parseDuration),
		optional("reply_within", &e.ReplyIn, parseDuration),
		optional("stale_packets", &e.Stale, count(1000)),
		field{"says", words(&e.Says)},
		field{"says_not", words(&e.SaysNot)},
		field{"heard", words(&e.Heard)},
		optional("keys", &e.Keys, text),
		optional("transferred", &e.Transferred, text))
}

var reasons = []string{"customer_hangup", "assistant_hangup", "api_hangup", "transferred", "max_duration", "max_silence",
	"voicemail", "busy", "no_answer", "rejected", "unreachable", "canceled", "insufficient_balance", "provider_failure",
	"media_timeout", "node_lost", "shutdown"}

func (c *Case) readEnd(n *yaml.Node) error {
	e := &End{Line: n.Line}
	c.End = e
	return object(n, "end",
		parsed("reason", &e.Reason, oneOf(reasons...)),
		parsed("within", &e.Within, parseDuration),
		field{"variables", func(n *yaml.Node) error {
			var err error
			if e.Variables, err = writtenValues(n); err != nil {
				return errors.New("variables must be written as name: value")
			}
			return nil
		}},
		optional("cost_below", &e.CostBelow, money),
		field{"tools", func(n *yaml.Node) error {
			e.exact = true
			return items(n, func(n *yaml.Node) error {
				s, err := scalar(n)
				if err != nil {
					return err
				}
				p, err := parseTool(s)
				e.Tools = append(e.Tools, p)
				return err
			})
		}},
		optional("lasts_at_most", &e.Longest, parseDuration),
		optional("lasts_at_least", &e.Shortest, parseDuration),
		optional("recorded", &e.Recorded, strconv.ParseBool),
		optional("rings_at_most", &e.Rings, parseDuration),
		optional("detail", &e.Detail, parseWords),
		field{"webhook", e.readWebhook})
}

func (b *Budget) read(n *yaml.Node) error {
	b.Line = n.Line
	return object(n, "budget",
		optional("reply_p50", &b.ReplyP50, parseDuration),
		optional("reply_p95", &b.ReplyP95, parseDuration),
		optional("reply_max", &b.ReplyMax, parseDuration),
		optional("greeting", &b.Greeting, parseDuration),
		optional("dead_air", &b.DeadAir, parseDuration),
		optional("false_cutoffs", &b.FalseCutoffs, count(1000)),
		optional("misheard", &b.Misheard, parsePercent),
		optional("words_per_minute", &b.Pace, parseRange))
}

// axis is one key of a matrix with its values.
type axis struct {
	name   string
	values []string
	set    func(c *Case, value string) error
}

// axes are what a matrix may vary.
var axes = []axis{
	{name: "seed", set: func(c *Case, v string) error {
		n, err := count(1 << 30)(v)
		c.Seed = uint64(n)
		return err
	}},
	{name: "noise", set: func(c *Case, v string) (err error) { c.Sound.Noise, err = parseNoise(v); return err }},
	{name: "codec", set: func(c *Case, v string) (err error) { c.Sound.Codec, err = codec(v); return err }},
	{name: "loss", set: func(c *Case, v string) (err error) { c.Sound.Loss, err = parsePercent(v); return err }},
	{name: "jitter", set: func(c *Case, v string) (err error) { c.Sound.Jitter, err = jitter(v); return err }},
	{name: "echo", set: func(c *Case, v string) (err error) { c.Sound.Echo, err = parseEcho(v); return err }},
	{name: "voice", set: func(c *Case, v string) (err error) { c.Caller.Voice, err = text(v); return err }},
	{name: "pace", set: func(c *Case, v string) (err error) { c.Caller.Pace, err = pace(v); return err }},
	{name: "channel", set: func(c *Case, v string) (err error) { c.Channel, err = oneOf(Call, Chat)(v); return err }},
	{name: "ears", set: func(c *Case, v string) (err error) { c.Ears, err = oneOf(Real, Told)(v); return err }},
}

func (c *Case) readMatrix(n *yaml.Node) error {
	var fields []field
	for _, a := range axes {
		fields = append(fields, field{a.name, func(n *yaml.Node) error {
			mine := axis{name: a.name, set: a.set}
			err := items(n, func(n *yaml.Node) error {
				s, err := scalar(n)
				if err != nil {
					return err
				}
				return mine.spread(s, c.most)
			})
			if err == nil && len(mine.values) == 0 {
				err = errors.New("it has no values")
			}
			for _, v := range mine.values {
				if err == nil {
					err = a.set(newCase(""), v)
				}
			}
			c.matrix = append(c.matrix, mine)
			return err
		}})
	}
	return object(n, "matrix", fields...)
}

// spread adds a value, or 1, 2, 3 for 1..3, to an axis of at most so many values.
func (a *axis) spread(s string, most int) error {
	from, n, err := ranged(s)
	switch {
	case err != nil:
		return err
	case len(a.values)+n > most:
		return manyCases(most)
	case !strings.Contains(s, ".."):
		a.values = append(a.values, s)
		return nil
	}
	for i := range n {
		a.values = append(a.values, strconv.Itoa(from+i))
	}
	return nil
}

func manyCases(most int) error {
	return fmt.Errorf("the matrix makes more than %d cases, the most here", most)
}

// variants are the cases that a matrix makes of one.
func (c *Case) variants() ([]Case, error) {
	list := []Case{*c}
	for _, a := range c.matrix {
		if len(list)*len(a.values) > c.most {
			return nil, &Mistake{Line: c.Line, Text: manyCases(c.most).Error()}
		}
		var more []Case
		for _, one := range list {
			for _, v := range a.values {
				next := one
				next.Values = append(slices.Clone(one.Values), a.name+"="+v)
				if err := a.set(&next, v); err != nil {
					return nil, &Mistake{Line: c.Line, Text: err.Error()}
				}
				more = append(more, next)
			}
		}
		list = more
	}
	for i := range list {
		list[i].matrix = nil
		if err := list[i].check(); err != nil {
			return nil, err
		}
	}
	return list, nil
}
