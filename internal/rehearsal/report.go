package rehearsal

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"
)

// Report is the results for programs.
type Report struct {
	Passed int          `json:"passed"`
	Failed int          `json:"failed"`
	Broken int          `json:"broken"`
	Tau    TauReport    `json:"tau_voice"` // of all calls
	Cases  []CaseReport `json:"cases"`
}

// CaseReport is one result.
type CaseReport struct {
	File       string          `json:"file"`
	Name       string          `json:"name"`
	Seed       uint64          `json:"seed"`
	State      string          `json:"state"` // pass, fail, error
	Error      string          `json:"error,omitempty"`
	TookMS     int64           `json:"took_ms"`
	LastedMS   int64           `json:"lasted_ms"` // the call, from its answer
	Again      string          `json:"again"`
	CallID     int64           `json:"call_id,omitempty"`
	Verdicts   []VerdictReport `json:"verdicts"`
	Figures    FigureReport    `json:"figures"`
	Unknown    []string        `json:"unknown,omitempty"` // figures that nobody has, of a call to a SIP address
	Transcript string          `json:"transcript,omitempty"`
	Files      []string        `json:"files,omitempty"` // sound and picture of a failure
}

// VerdictReport is what became of one expectation.
type VerdictReport struct {
	Line int    `json:"line"`
	OK   bool   `json:"ok"`
	What string `json:"what"`
	Got  string `json:"got,omitempty"`
	AtMS int64  `json:"at_ms"`
}

// FigureReport is what was measured.
type FigureReport struct {
	ReplyMS     []int64   `json:"reply_ms"`
	GreetingMS  int64     `json:"greeting_ms"`
	Cutoffs     int       `json:"false_cutoffs"`
	YieldMS     []int64   `json:"yield_ms"`
	NotYielded  int       `json:"not_yielded"`
	Backed      int       `json:"backchannels"`
	Paused      int       `json:"false_yields"`
	Resumed     int       `json:"resumed"`
	Missed      int       `json:"missed_turns"`
	DeadAirMS   int64     `json:"dead_air_ms"`
	Dead        int       `json:"waits_over_2s"`
	Stale       int       `json:"stale_packets"`
	Tools       int       `json:"tools"`
	Wanted      int       `json:"tools_expected"`
	Forgotten   int       `json:"tools_missed"`
	Values      int       `json:"values"`
	Right       int       `json:"values_right"`
	Words       int       `json:"words"`
	Misheard    int       `json:"misheard"`
	Cost        float64   `json:"cost"`
	WaterfallMS []Latency `json:"waterfall"`
	Tau         TauReport `json:"tau_voice"`
}

func figures(f *Figures) FigureReport {
	each := func(all []time.Duration) []int64 {
		out := []int64{}
		for _, d := range all {
			out = append(out, d.Milliseconds())
		}
		return out
	}
	r := FigureReport{ReplyMS: each(f.Replies), GreetingMS: f.Greeting.Milliseconds(), Cutoffs: f.Cutoffs,
		YieldMS: each(f.Yields), NotYielded: f.Kept, Backed: f.Backed, Paused: f.Paused, Resumed: f.Resumed, Missed: f.Missed,
		DeadAirMS: f.DeadAir.Milliseconds(), Dead: f.Dead, Stale: f.Stale, Tools: f.Tools, Wanted: f.Wanted, Forgotten: f.Forgotten,
		Values: f.Values, Right: f.Right, Words: f.Words,
		Misheard: f.Wrong, Cost: f.Cost, WaterfallMS: f.Waterfall, Tau: f.Tau.report()}
	if r.WaterfallMS == nil {
		r.WaterfallMS = []Latency{}
	}
	return r
}

// NewReport makes the report of results. again is the command that performs one again.
func NewReport(results []Result, again func(*Result) string) *Report {
	out, all := &Report{Cases: []CaseReport{}}, Tau{}
	for i := range results {
		r := &results[i]
		c := CaseReport{File: r.Case.File, Name: r.Title(), Seed: r.Seed(), State: strings.ToLower(state(r)),
			TookMS: r.Took.Milliseconds(), Again: again(r), Verdicts: []VerdictReport{}, Figures: figures(&r.Figures),
			Files: r.Files}
		switch {
		case r.Err != nil:
			c.Error = r.Err.Error()
			out.Broken++
		case r.Passed():
			out.Passed++
		default:
			out.Failed++
		}
		if r.Case.Stranger() {
			c.Unknown = unknown
		}
		if r.Timeline != nil {
			c.LastedMS = r.Timeline.Ended.Milliseconds()
		}
		if r.Record != nil {
			c.CallID, c.Transcript = r.Record.ID, r.Record.Transcript
		}
		for _, v := range r.Verdicts {
			c.Verdicts = append(c.Verdicts, VerdictReport{v.Line, v.OK, v.What, v.Got, v.At.Milliseconds()})
		}
		out.Cases = append(out.Cases, c)
		all.add(r.Figures.Tau)
	}
	out.Tau = all.report()
	return out
}

// JSON writes the report.
func (p *Report) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(p)
}

// JUnit writes the report as CI systems read it.
func (p *Report) JUnit(w io.Writer) error {
	type problem struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
	type testcase struct {
		Name    string   `xml:"name,attr"`
		Class   string   `xml:"classname,attr"`
		File    string   `xml:"file,attr"`
		Time    string   `xml:"time,attr"`
		Failure *problem `xml:"failure,omitempty"`
		Error   *problem `xml:"error,omitempty"`
		Out     string   `xml:"system-out,omitempty"`
	}
	suite := struct {
		XMLName  xml.Name   `xml:"testsuite"`
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Errors   int        `xml:"errors,attr"`
		Cases    []testcase `xml:"testcase"`
	}{Name: "parley test", Tests: len(p.Cases), Failures: p.Failed, Errors: p.Broken}
	for _, c := range p.Cases {
		t := testcase{Name: c.Name, Class: strings.TrimSuffix(c.File, ".yaml"), File: c.File,
			Time: fmt.Sprintf("%.3f", float64(c.TookMS)/1000), Out: c.Transcript}
		var failed []string
		for _, v := range c.Verdicts {
			if !v.OK {
				failed = append(failed, fmt.Sprintf("%s:%d: expected: %s; %s", c.File, v.Line, v.What, v.Got))
			}
		}
		text := strings.Join(append(failed, "again: "+c.Again), "\n")
		switch {
		case c.Error != "":
			t.Error = &problem{c.Error, text}
		case len(failed) > 0:
			t.Failure = &problem{failed[0], text}
		}
		suite.Cases = append(suite.Cases, t)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(suite); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
