// Command baddays runs the real program under mixed load, does bad things to it, and judges afterwards what it did by the logs
// of the far ends: the model server, the webhook receiver, the carrier of text messages, the telephone exchange.
// `make baddays ARGS="-day kill -kills 100"`. `make soak` has nothing bad happen for a long time, and judges whether anything grows.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// day is one kind of bad thing.
type day struct {
	name string
	what string
	do   func(d *doing) error
}

var days = []day{
	{"kill", "killed at random moments and started again", killed},
	{"disk", "its disk full, its files not growing, its disk read-only at the start", noDisk},
	{"postgres", "PostgreSQL away, its connections broken or all taken, slow, only reading", noPostgres},
	{"model", "the model hanging, refusing with 429, answering garbage", noModel},
	{"files", "out of file handles", noFiles},
	{"receiver", "the webhook receiver away", noReceiver},
}

// soakName names a day on which nothing bad happens. It takes as long as it is told to, and is not among all days.
const soakName = "soak"

// doing is a day under way.
type doing struct {
	*world
	load  *load
	lasts time.Duration // each disturbance
	kills int
	seed  uint64
	notes []string
	wrong []string // what the day itself found
}

func (d *doing) note(format string, a ...any) { d.notes = append(d.notes, fmt.Sprintf(format, a...)) }

func main() {
	log.SetFlags(0)
	days := append(days, day{soakName, "work as on any day, with retention set; what it holds must stay flat", soaked})
	var names []string
	for _, d := range days {
		names = append(names, d.name)
	}
	binary := flag.String("binary", "bin/parley", "the program")
	which := flag.String("day", "all", "days to run, separated by commas: "+strings.Join(names, ", ")+", or all bad ones")
	lasts := flag.Duration("for", 10*time.Second, "how long each disturbance, or the soak, lasts")
	postgres := flag.Bool("postgres", false, "keep the data in PostgreSQL on every day, not only on its own")
	crowd := flag.Int("crowd", 1, "how many clients of each kind there are")
	kills := flag.Int("kills", 50, "how often the day kill kills")
	seed := flag.Uint64("seed", 1, "of the random moments and of the load")
	flag.Parse()
	fmt.Printf("%s, %d cores, seed %d\n", runtime.Version(), runtime.NumCPU(), *seed)
	chosen := strings.Split(*which, ",")
	for _, name := range chosen {
		if name != "all" && !slices.Contains(names, name) {
			log.Fatalf("there is no day %q: %s, or all", name, strings.Join(names, ", "))
		}
	}
	bad := false
	for _, day := range days {
		if *which == "all" && day.name != soakName || slices.Contains(chosen, day.name) {
			d := &doing{lasts: *lasts, kills: *kills, seed: *seed}
			bad = !run(day, d, *binary, *postgres || day.name == "postgres", *crowd) || bad
		}
	}
	if bad {
		os.Exit(1)
	}
}

// run has a day happen, and says whether everything was right at its end.
func run(day day, d *doing, binary string, postgres bool, crowd int) bool {
	fmt.Printf("\n%s: %s\n", day.name, day.what)
	began := time.Now()
	soak := day.name == soakName
	w, err := begin(binary, postgres, soak)
	if err != nil {
		log.Printf("  begin: %v", err)
		return false
	}
	defer w.close()
	d.world, d.load = w, newLoad(w)
	if soak {
		d.load.maxDocuments, d.load.maxRemembered = 50, 100
	}
	d.load.start(d.seed, crowd)
	err = day.do(d)
	d.load.stop()
	if err == nil {
		err = w.ready()
	}
	var wrong []string
	if err == nil {
		wrong = append(d.wrong, judge(w, d.load, soak)...)
	} else {
		wrong = append(wrong, err.Error())
	}
	for _, n := range d.notes {
		fmt.Println("  " + n)
	}
	fmt.Print(d.load.summary())
	for i, s := range wrong {
		if i == 20 {
			fmt.Printf("  WRONG: and %d more\n", len(wrong)-i)
			break
		}
		fmt.Println("  WRONG: " + s)
	}
	if len(wrong) > 0 {
		w.keepLog(day.name)
	}
	fmt.Printf("  %s in %v\n", map[bool]string{true: "ok", false: "NOT OK"}[len(wrong) == 0], time.Since(began).Round(time.Second))
	return len(wrong) == 0
}
