// Package wire is the WebSocket under the streaming vendors: dialled, read and closed, with failures reported in ai's
// kinds. It knows no vendor.
package wire

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"parley/internal/ai"
	"parley/internal/crash"
)

const (
	dialTime  = 5 * time.Second // for the handshake
	sendTime  = 5 * time.Second // for a message to be taken by the network
	leaveTime = time.Second     // for the far end to answer a close frame
	maxAnswer = 16 << 20        // octets of one message
)

// ErrClosed is the error of a Conn that was closed on this side. It is not net.ErrClosed, with which the WebSocket
// library also answers a write after the far end closed.
var ErrClosed = errors.New("the connection was closed on this side")

// Conn is an open WebSocket. One goroutine receives, any number may send. Its errors are *ai.Error, or ErrClosed.
type Conn struct {
	ws     *websocket.Conn
	ctx    context.Context
	cancel context.CancelCauseFunc
	pings  sync.WaitGroup
	begun  atomic.Bool // something was received
	buf    []byte
}

// Options are how a Conn is opened.
type Options struct {
	Header http.Header
	// Ping is the time between two pings. A far end that doesn't answer one for as long has stalled. Somebody must be
	// receiving all the time. 0 means no pings.
	Ping time.Duration
	// Transport is the way to the far end; nil is the usual one.
	Transport http.RoundTripper
	// Most is how many octets a message may have; 0 is what vendors may send.
	Most int64
}

// Address is a URL for Dial: a path and a query below a vendor's base URL, which is http or https.
func Address(base, path string, query url.Values) (string, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", errors.New("the base URL is not an http or https URL")
	}
	u.Path = strings.TrimSuffix(u.Path, "/") + path
	u.RawQuery = query.Encode()
	return u.String(), nil
}

// Dial opens a WebSocket. The error is an *ai.Error that says what can be done about it, unless ctx has ended: then it
// is context.Cause(ctx). ctx affects only the dialling.
func Dial(ctx context.Context, address string, o Options) (*Conn, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	dial, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	opts := &websocket.DialOptions{HTTPHeader: o.Header}
	if o.Transport != nil {
		opts.HTTPClient = &http.Client{Transport: o.Transport, CheckRedirect: ai.Redirect}
	}
	ws, res, err := websocket.Dial(dial, address, opts)
	if err != nil {
		return nil, unopened(ctx, res, err)
	}
	ws.SetReadLimit(cmp.Or(o.Most, maxAnswer))
	c := &Conn{ws: ws}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	if o.Ping > 0 {
		crash.Go(&c.pings, func() { c.ping(o.Ping) }, c.cancel)
	}
	return c, nil
}

// Within has a vendor accept a session, by accept, which ends when the connection does. A vendor that takes longer has stalled. The error
// is context.Cause(ctx) if ctx has ended.
func (c *Conn) Within(ctx context.Context, limit time.Duration, accept func() error) error {
	patience, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	stop := context.AfterFunc(patience, c.Close)
	err := accept()
	switch stopped := stop(); {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !stopped:
		return &ai.Error{Kind: ai.Stalled, Err: errors.New("the session was not accepted in time")}
	}
	return err
}

// Samples are those of PCM of 16 bits, little endian.
func Samples(raw []byte) []int16 {
	pcm := make([]int16, len(raw)/2)
	for i := range pcm {
		pcm[i] = int16(binary.LittleEndian.Uint16(raw[2*i:]))
	}
	return pcm
}

// Receive waits for the next message; text reports whether it is a text message. The data is valid until the next
// Receive.
func (c *Conn) Receive() (data []byte, text bool, err error) {
	kind, r, err := c.ws.Reader(c.ctx)
	if err == nil {
		c.buf, err = readAll(c.buf[:0], r)
	}
	if err != nil {
		return nil, false, c.failure(err)
	}
	c.begun.Store(true)
	return c.buf, kind == websocket.MessageText, nil
}

func readAll(b []byte, r io.Reader) ([]byte, error) {
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if errors.Is(err, io.EOF) {
			return b, nil
		}
		if err != nil {
			return b, err
		}
	}
}

// Send sends a value as JSON.
func (c *Conn) Send(v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return &ai.Error{Kind: ai.Malformed, Err: err}
	}
	return c.send(websocket.MessageText, raw)
}

// SendText sends a text that is not JSON.
func (c *Conn) SendText(text string) error { return c.send(websocket.MessageText, []byte(text)) }

// SendWritten sends a text that is already encoded.
func (c *Conn) SendWritten(raw []byte) error { return c.send(websocket.MessageText, raw) }

// SendBinary sends octets.
func (c *Conn) SendBinary(raw []byte) error { return c.send(websocket.MessageBinary, raw) }

func (c *Conn) send(kind websocket.MessageType, raw []byte) error {
	ctx, cancel := context.WithTimeoutCause(c.ctx, sendTime,
		&ai.Error{Kind: ai.Stalled, Err: fmt.Errorf("the vendor took nothing for %v", sendTime)})
	defer cancel()
	if err := c.ws.Write(ctx, kind, raw); err != nil {
		if e, ok := errors.AsType[*ai.Error](context.Cause(ctx)); ok {
			c.cancel(e) // the socket is closed by that too
		}
		return c.failure(err)
	}
	return nil
}

// ping sends pings until the Conn is closed.
func (c *Conn) ping(every time.Duration) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-c.ctx.Done():
			return
		}
		ctx, cancel := context.WithTimeout(c.ctx, every)
		err := c.ws.Ping(ctx)
		if err != nil && ctx.Err() != nil && c.ctx.Err() == nil {
			c.cancel(&ai.Error{Kind: ai.Stalled, Err: fmt.Errorf("no answer to a ping for %v", every)})
		}
		cancel()
		if err != nil { // who receives is told, and why
			return
		}
	}
}

// Leave closes the connection with a close frame (1000), and returns when nothing of it is left running. While somebody is
// receiving, who is told of the answer as of the connection's end, the far end has a second to answer; else it has the
// library's five.
func (c *Conn) Leave() {
	late := time.AfterFunc(leaveTime, func() { c.cancel(ErrClosed) }) // which ends the receiving, and closes the socket
	_ = c.ws.Close(websocket.StatusNormalClosure, "")                 // it is over, whatever the far end says
	late.Stop()
	c.Close()
}

// Close drops the connection, and returns when nothing of it is left running. To say goodbye in the vendor's words,
// send them first.
func (c *Conn) Close() {
	c.cancel(ErrClosed)
	_ = c.ws.CloseNow()
	c.pings.Wait()
}
