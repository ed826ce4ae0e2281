// Command bench measures the real program against floors measured in the same run: `make bench GROUP=api`. What it
// prints are ratios first; absolute figures are this machine's.
package main

import (
	"flag"
	"fmt"
	"log"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
)

// groups are what can be measured.
var groups = map[string]func(*bench) error{
	"api":       benchAPI,
	"browser":   benchBrowser,
	"campaign":  benchCampaign,
	"chat":      benchChat,
	"endpoint":  benchEndpoint,
	"event":     benchEvent,
	"history":   benchHistory,
	"knowledge": benchKnowledge,
	"neighbour": benchNeighbour,
	"quality":   benchQuality,
	"rehearsal": benchRehearsal,
	"share":     benchShare,
	"tool":      benchTool,
	"trace":     benchTrace,
	"vendor":    benchVendor,
	"voice":     benchVoice,
}

func main() {
	log.SetFlags(0)
	names := slices.Sorted(maps.Keys(groups))
	group := flag.String("group", "all", "one of "+strings.Join(names, ", ")+", or all")
	binary := flag.String("binary", "bin/parley", "the program to measure")
	echoes := flag.Int("echo", 0, "be the floor of the voice group for so many calls, and nothing else")
	flag.IntVar(&historyCalls, "calls", historyCalls, "calls of the history group's longer history, with ten times as many messages")
	flag.Parse()
	if *echoes > 0 {
		if err := echo(*echoes); err != nil {
			log.Fatal(err)
		}
		return
	}
	if *group != "all" {
		if groups[*group] == nil {
			log.Fatalf("there is no group %q: %s, or all", *group, strings.Join(names, ", "))
		}
		names = []string{*group}
	}
	fmt.Printf("%s, %d cores\n", runtime.Version(), runtime.NumCPU())
	for _, name := range names {
		fmt.Printf("\n%s\n", name)
		b := &bench{binary: *binary}
		err := groups[name](b)
		b.close()
		if err != nil {
			log.Printf("bench %s: %v", name, err)
			os.Exit(1)
		}
	}
}
