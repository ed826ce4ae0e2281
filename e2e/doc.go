// Package e2e tries the whole program as its users meet it: the real binary on a free port with a fresh data
// directory, spoken to over the network alone, by HTTP and by a real browser. There is nothing here but tests.
//
// e2e_test.go starts the program (start) and speaks HTTP to it (program.call); browser_test.go drives Chromium
// (browse) and fails a test on any error in the browser's console and any breach of the content security policy;
// telephone_test.go gives it a telephone line and telephones (package phone, sipp, baresip) that speak with it over
// SIP and RTP (telephone).
package e2e
