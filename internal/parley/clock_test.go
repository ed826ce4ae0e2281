package parley

import (
	"testing"
	"time"
)

// Two machines whose clocks are two minutes apart agree on the time once they follow the same database, also when one's clock is
// set while it runs; a reading that agrees, or took long, changes nothing.
func TestFollow(t *testing.T) {
	t.Cleanup(func() { followed.Store(nil) })
	if d := Now().Sub(At(time.Now())).Abs(); d > time.Second {
		t.Fatalf("alone, it is %s off", d)
	}
	for _, off := range []time.Duration{time.Minute, -time.Minute} {
		asked := time.Now()
		theirs := At(asked).Add(off)
		Follow(theirs, asked, asked)
		if d := Now().Sub(At(time.Now()).Add(off)).Abs(); d > time.Second {
			t.Errorf("%s off, it is %s off the database's clock", off, d)
		}
		set := followed.Load()
		Follow(theirs.Add(closely/2), asked, asked)                        // it agrees
		Follow(theirs.Add(2*time.Second), asked, asked.Add(6*time.Second)) // it may be from any moment of these six seconds
		if followed.Load() != set {
			t.Error("a reading that says nothing new changes the clock")
		}
		Follow(theirs.Add(2*time.Second), asked, asked)
		if followed.Load() == set {
			t.Error("a reading that is two seconds off changes nothing")
		}
	}
}
