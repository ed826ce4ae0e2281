package sip

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	sipgo "github.com/emiago/sipgo/sip"
)

// What is wrong with a message that can't be taken. Those who are known here are told.

// flaw says what is wrong with a request (RFC 3261, section 8.1.1), "" if nothing is.
func flaw(req *sipgo.Request) string {
	for _, h := range []struct {
		name, short string
		read        bool
	}{
		{"Via", "v", req.Via() != nil && req.Via().Host != ""}, {"From", "f", req.From() != nil},
		{"To", "t", req.To() != nil}, {"Call-ID", "i", req.CallID() != nil}, {"CSeq", "", req.CSeq() != nil},
		{"Content-Length", "l", true},
	} {
		if !h.read {
			return "There is no " + h.name + "."
		}
		if h.name != "Via" && differ(append(req.GetHeaders(h.name), req.GetHeaders(h.short)...)) {
			return "There are several " + h.name + " headers, which differ."
		}
	}
	for _, h := range req.GetHeaders("Record-Route") { // the parser doesn't notice
		if rr, ok := h.(*sipgo.RecordRouteHeader); ok && rr.Address.Host == "" {
			return "The header Record-Route can't be read."
		}
	}
	if !strings.EqualFold(string(req.CSeq().MethodName), string(req.Method)) {
		return "CSeq names another method."
	}
	return ""
}

// differ reports whether the values of some headers are not the same.
func differ(list []sipgo.Header) bool {
	return len(list) > 1 && slices.ContainsFunc(list[1:], func(h sipgo.Header) bool { return h.Value() != list[0].Value() })
}

// spared are the headers without which a message is still understood, if they can't be read.
var (
	sparedInRequests = []string{"route", "referred-by", "b"}
	sparedInAnswers  = []string{"route", "referred-by", "b", "contact", "m", "record-route", "refer-to", "r"}
)

// read parses a message that tidy has written. Where it can't be, bad says why. text is what was parsed: headers that
// matter little are left out if they can't be read. A parser that panics on somebody's packet must not take the
// process down.
func read(text []byte) (m sipgo.Message, out []byte, bad string) {
	defer func() {
		if recover() != nil {
			m, bad = nil, "The message can't be read."
		}
	}()
	m, err := sipgo.ParseMessage(text)
	if err == nil {
		return m, text, ""
	}
	if errors.Is(err, sipgo.ErrParseReadBodyIncomplete) {
		return nil, text, "Content-Length is more than came."
	}
	spared := sparedInRequests
	if isVersion(text) {
		spared = sparedInAnswers
	}
	out, bad = spare(text, spared)
	if bad != "" {
		return nil, text, bad
	}
	if m, err = sipgo.ParseMessage(out); err != nil {
		return nil, text, "The first line can't be read."
	}
	return m, out, ""
}

// spare leaves out the given headers where they can't be read. It names the first other one that can't be.
func spare(text []byte, names []string) (out []byte, bad string) {
	head, body := headOf(text)
	lines := lineReader{rest: head}
	first, _ := lines.physical()
	out = append(append(out, first...), "\r\n"...)
	parsers := sipgo.HeadersParser(sipgo.DefaultHeadersParser())
	for {
		line, more := lines.physical()
		if !more {
			break
		}
		if _, err := parsers.ParseHeader(nil, line); err != nil {
			name, _, _ := strings.Cut(string(line), ":")
			if !slices.Contains(names, strings.ToLower(name)) {
				return nil, "The header " + name + " can't be read."
			}
			continue
		}
		out = append(append(out, line...), "\r\n"...)
	}
	return append(append(out, "\r\n"...), body...), ""
}

// refuseUnread answers a request that can't be read with 400, or 416 if it is for an address of a kind that no telephone
// has. The answer has the headers that it needs as they came. It returns the status, 0 where there was no answer.
func (g *ingress) refuseUnread(text []byte, bad string) (code int) {
	if bytes.HasPrefix(text, []byte("ACK ")) {
		return 0
	}
	head, _ := headOf(text)
	lines := lineReader{rest: head}
	first, _ := lines.physical()
	code = 400
	if _, to := cutBlank(first); hasScheme(to) {
		scheme, _, _ := strings.Cut(string(to), ":")
		if foreign(&sipgo.Uri{Scheme: strings.ToLower(scheme)}) {
			code = 416
		}
	}
	var vias, rest []string
	for {
		line, more := lines.physical()
		if !more {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch strings.ToLower(string(name)) {
		case "via", "v":
			vias = append(vias, string(line))
		case "to", "t":
			if !bytes.Contains(value, []byte(";tag=")) {
				line = append(slices.Clone(line), ";tag="+token(16)...)
			}
			rest = append(rest, string(line))
		case "from", "f", "call-id", "i", "cseq":
			rest = append(rest, string(line))
		}
	}
	if len(vias) == 0 {
		return 0
	}
	to := g.from
	if before, after, ok := strings.Cut(vias[0], ";rport"); ok && !strings.HasPrefix(after, "=") {
		vias[0] = before + ";rport=" + strconv.Itoa(int(to.Port())) + ";received=" + to.Addr().String() + after
	} else if via, _ := viaOf(vias[0]); via != nil && !ok {
		to = netip.AddrPortFrom(to.Addr(), answerPort(via))
	}
	lead := fmt.Sprintf("SIP/2.0 %d %s\r\n", code, phrase(code))
	g.write([]byte(lead+strings.Join(append(vias, rest...), "\r\n")+"\r\n"+warning(bad)+
		"\r\nServer: "+agent+"\r\nContent-Length: 0\r\n\r\n"), to)
	return code
}

// viaOf reads a Via's line.
func viaOf(line string) (*sipgo.ViaHeader, error) {
	list, err := sipgo.HeadersParser(sipgo.DefaultHeadersParser()).ParseHeader(nil, []byte(line))
	if err != nil || len(list) == 0 {
		return nil, err
	}
	via, _ := list[0].(*sipgo.ViaHeader)
	return via, nil
}

// warning is a header that says what is wrong (RFC 3261, section 20.43).
func warning(bad string) string { return "Warning: " + warningOf(bad) }

func warningOf(bad string) string {
	return `399 parley "` + strings.NewReplacer(`"`, "'", `\`, "/", "\r", " ", "\n", " ").Replace(bad) + `"`
}
