package sip

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"strconv"
	"strings"
)

// partOf finds the session description in a body of a media type.
func partOf(kind string, body []byte) (sdp []byte, ok bool) {
	media, params, err := mime.ParseMediaType(kind)
	switch {
	case err != nil:
		return nil, false
	case media == "application/sdp":
		return body, true
	case !strings.HasPrefix(media, "multipart/") || params["boundary"] == "":
		return nil, false
	}
	r := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	for range 16 {
		p, err := r.NextPart()
		if err != nil {
			return nil, false
		}
		if media, _, _ := mime.ParseMediaType(p.Header.Get("Content-Type")); media == "application/sdp" {
			sdp, err := io.ReadAll(p)
			return sdp, err == nil
		}
	}
	return nil, false
}

// infoKey is the key in a SIP INFO, 0 if there is none; ok reports whether its media type is one for keys.
func infoKey(kind string, body []byte) (key byte, ok bool) {
	media, _, _ := mime.ParseMediaType(kind)
	text := strings.TrimSpace(string(body))
	switch media {
	case "application/dtmf":
	case "application/dtmf-relay":
		signal := ""
		for line := range strings.SplitSeq(text, "\n") {
			if name, value, found := strings.Cut(line, "="); found &&
				strings.EqualFold(strings.TrimSpace(name), "Signal") {
				signal = strings.TrimSpace(value)
			}
		}
		text = signal
	default:
		return 0, false
	}
	text = strings.ToUpper(text)
	if n, err := strconv.Atoi(text); err == nil && n >= 10 && n <= 15 { // some write * and # as numbers
		return "*#ABCD"[n-10], true
	}
	if len(text) != 1 || !strings.Contains("0123456789*#ABCD", text) {
		return 0, true
	}
	return text[0], true
}

// fragment is the status at the start of a message/sipfrag body (RFC 3420), 0 if there is none.
func fragment(body []byte) (code int, reason string) {
	line, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
	version, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	text, reason, _ := strings.Cut(rest, " ")
	code, err := strconv.Atoi(text)
	if err != nil || !strings.HasPrefix(strings.ToUpper(version), "SIP/") || code < 100 || code > 699 {
		return 0, ""
	}
	return code, strings.TrimSpace(reason)
}
