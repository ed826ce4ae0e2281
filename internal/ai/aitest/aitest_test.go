package aitest

import "testing"

func TestFakeConforms(t *testing.T) { Conform(t, &Fake{}) }
