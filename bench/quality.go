package main

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// benchQuality measures what is no matter of speed: which sounds interrupt a reply, who is taken for an answering
// machine, what is taken for speech, who is cut off in a pause, and what noise suppression does. With recordings of real
// people it measures only where PARLEY_RECORDINGS names a directory that has them, with held-out sentences only where
// PARLEY_SENTENCES does, and says so otherwise. The samples and their measures are those of the tests, which look at a
// few of them each time; here it is all that are held out, and with PARLEY_QUALITY=all also those that the rules were made
// with. Goals: of noises and words of listening over a reply, 97 % resumed where they stopped, within 250 ms in the
// median, and 1.5 % of interruptions missed; a verdict within 2.5 s of the answer in the median, 1 % of people lost, 90 %
// of machines caught; speech in noise at 10 dB, 95 % hit and 5 % false; pauses in noise 6 dB quieter, clean speech changed
// by 1 dB, recognition not worse; 25 % of turns cut off where turns are taken after 300 ms in the mean, 850 ms in the mean
// where 5 % are, in each language 30 % fewer than by silence alone.
func benchQuality(*bench) error {
	which := "PARLEY_QUALITY=" + cmp.Or(os.Getenv("PARLEY_QUALITY"), "held")
	for _, group := range []struct{ about, tests, dir string }{
		{"voice detection, noise suppression, echoes, and how a voice ends",
			"^(TestVAD|TestCadenceReal|TestVADReal|TestDenoiser|TestEcho|TestEchoHeld|TestMelody|TestMelodyReal|TestForegroundReal)$",
			"./internal/audio"},
		{"who answered", "^(TestWhoAnswered|TestAnswerers)$", "./internal/turn"},
		{"numbers, names and addresses", "^(TestCodes|TestSpelled)$", "./internal/turn"},
		{"when a turn is over", "^TestTurnsHeldOut$", "./internal/lang"},
		{"interruptions, and recognition in noise and over bad networks",
			"^(TestOverlaps|TestBackgroundTalk|TestNoiseSuppressionAndRecognition|TestImpairedRecognition)$",
			"./internal/voice"},
	} {
		fmt.Printf(" %s\n", group.about)
		cmd := exec.Command("go", "test", "-count=1", "-timeout=60m", "-v", "-run", group.tests, group.dir)
		cmd.Env = append(os.Environ(), which, "CI=true") // what is not installed is an error
		if err := figures(cmd); err != nil {
			return fmt.Errorf("%s: %w", group.about, err)
		}
	}
	return nil
}

// figures runs tests and prints the figures that they tell, as they come. A goal that is missed is a figure, too: it is an
// error only if nothing was measured.
func figures(cmd *exec.Cmd) error {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return err
	}
	var rest strings.Builder
	told := false
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if _, figure, ok := strings.Cut(lines.Text(), "quality: "); ok {
			fmt.Printf("  %s\n", figure)
			told = true
		} else {
			fmt.Fprintln(&rest, lines.Text())
		}
	}
	if err = cmd.Wait(); told {
		return nil
	}
	return fmt.Errorf("no figures (%v)\n%s", err, rest.String())
}
