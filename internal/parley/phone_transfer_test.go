package parley_test

import (
	"testing"

	"parley/internal/parley"
)

func TestTransferTarget(t *testing.T) {
	for in, want := range map[string][2]string{ // the target, and the number behind it
		"+49 30 901820":                    {"+4930901820", "+4930901820"},
		"0049 30 901820":                   {"+4930901820", "+4930901820"},
		"20":                               {"20", ""},
		" 123456 ":                         {"123456", ""},
		"sip:anna@pbx.example.com":         {"sip:anna@pbx.example.com", ""},
		"SIP:204@192.0.2.7:5070":           {"sip:204@192.0.2.7:5070", ""},
		"sip:a.b-c_d+e@[2001:db8::1]:5060": {"sip:a.b-c_d+e@[2001:db8::1]:5060", ""},
		"sip:+4930901820@pbx":              {"sip:+4930901820@pbx", "+4930901820"},
		"sip:004930901820@pbx":             {"sip:004930901820@pbx", "+4930901820"},
		"sip:+1-900-555-0100@pbx":          {"sip:+1-900-555-0100@pbx", "+19005550100"},
		"sip:12025550142@pbx":              {"sip:12025550142@pbx", "+12025550142"},
	} {
		target, number, ok := parley.TransferTarget(in)
		if !ok || target != want[0] || number != want[1] {
			t.Errorf("%q is %q, number %q, %v", in, target, number, ok)
		}
	}
	for _, in := range []string{"", "1", "1234567", "12a", "*12", "anna", "030 901820", "sip:",
		"sip:pbx.example.com", "sip:@pbx", "sip:anna@", "sips:anna@pbx", "tel:+4930901820",
		"sip:anna@pbx;transport=tcp", "sip:anna@pbx?x=y", "sip:anna@pbx>", "sip:an na@pbx", "sip:anna@pbx\r\nX: y",
		"sip:a;b@pbx", "sip:0301234567@pbx", "sip:a@b@pbx"} {
		if target, number, ok := parley.TransferTarget(in); ok {
			t.Errorf("%q is taken for %q, number %q", in, target, number)
		}
	}
}
