package voice_test

import (
	"path/filepath"
	"testing"

	"parley/internal/voice/voicetest"
)

// Every dialogue in testdata is performed on fake time.
func TestDialogues(t *testing.T) {
	files, err := filepath.Glob("testdata/*.dialogue")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no dialogues", err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) { voicetest.Play(t, f) })
	}
}
