// Package egress guards requests to URLs that tenants name: mid-call tools, webhooks, websites to be read.
//
// A [Guard] judges the address that a connection is about to be made to, after the name was resolved, so that it
// makes no difference what a name resolved to a moment ago, or which redirect led there. Public addresses pass; all
// others are refused unless the operator allows them (PARLEY_EGRESS_ALLOW). Every port is open: an endpoint on port
// 8443 is as good as one on 443. No proxy is ever used, and the protocol is HTTP/1.1: one slow answer holds up no
// other, and no request is sent twice that may have been heard the first time.
//
// How long an exchange may take in all is the caller's to say, by the request's context; how much of an answer is
// read, by [Read].
package egress
