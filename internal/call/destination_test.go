package call_test

import (
	"testing"

	"parley/internal/call"
)

func TestDestinations(t *testing.T) {
	for _, c := range []struct {
		list []string
		may  []string
		not  []string
	}{
		{nil, nil, []string{"+12025550100", "+493012345678"}},
		{[]string{"US"}, []string{"+12025550100", "+18005550199"}, []string{"+14165550100", "+18765551234", "+19005550100", "+493012345678", "x", ""}},
		{[]string{"+1"}, []string{"+12025550100", "+14165550100"}, []string{"+19005550100", "+442079460003"}},
		{[]string{"+49", "!+4930"}, []string{"+498912345678"}, []string{"+493012345678", "+499001234567", "+4918012345678"}},
		{[]string{"!+49", "+4930", "DE"}, []string{"+493012345678"}, []string{"+498912345678"}},
		// Everywhere, but for satellites, international premium services, and those that pay who is called.
		{[]string{"+"}, []string{"+12025550100", "+8613812345678", "+2348031234567"}, []string{"+881612345678", "+870773111632", "+979123456789", "+19005550100", "+499001234567"}},
		{[]string{"+", "!+86"}, []string{"+12025550100"}, []string{"+8613812345678"}},
	} {
		d, err := call.ParseDestinations(c.list)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range c.may {
			if !d.Allow(n) {
				t.Errorf("%v: %s is not allowed", c.list, n)
			}
		}
		for _, n := range c.not {
			if d.Allow(n) {
				t.Errorf("%v: %s is allowed", c.list, n)
			}
		}
	}
	for _, bad := range []string{"us", "USA", "49", "+4x", "!US", "", "!"} {
		if _, err := call.ParseDestinations([]string{"+1", bad}); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}
