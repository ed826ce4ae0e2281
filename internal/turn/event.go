package turn

import (
	"time"

	"parley/internal/parley"
)

// Event is something that happened. Its kind determines which fields count.
type Event struct {
	Kind EventKind
	At   time.Duration // since the answer

	Speech, Voiced bool    // of a frame, by the detector
	Sure           bool    // and those before it were voiced too: no click, nor a hum
	Silences       bool    // and it likely has words, so that a reply falls silent for it
	Words          float32 // over a reply, how likely the sound has words that mean something, as a logit; 0: nothing is known
	Sound          float32 // the same, at any time: for what a text is worth
	Cadence        float32 // of a frame of a pause: how much the voice before it sounded like the end, in log-odds; 0: unknown
	Key            byte

	N             int // the number of an utterance: the recognizer was opened for it with OpenRecognizer
	Text          string
	Final, Failed bool
	NoSpeech      float64 // of a Text: how likely nobody spoke, as the recognizer says; 0: it doesn't

	Reply  int // what is told of another reply than the present one counts for nothing: that one was cut off
	Wait   time.Duration
	Reason parley.EndedReason
	Manner *Manner
	Over   float64 // a probability
}

// Said is part of what is being answered: an utterance of the recognizer, whose text may not be known yet.
type Said struct {
	N     int // -1: keys
	Text  string
	Final bool
}

// EventKind says what happened.
type EventKind uint8

// The events, each with the fields that it uses. From Token on they concern a reply.
const (
	Tick      EventKind = iota // time passes
	Voice                      // a frame was judged: Speech, Voiced, Sure, Words, Cadence
	Beep                       // a tone that answering machines make
	FaxTone                    // one that fax machines make
	Music                      // music has sounded for seconds, and goes on
	Key                        // the customer pressed Key
	Text                       // the recognizer understood something: N, Text, Final, Failed
	Lost                       // utterances before N won't be understood any more
	End                        // the call is over: Reason
	TakenOver                  // a person speaks from here on, in place of the assistant
	Relieved                   // likewise, for a while: the assistant listens and says nothing
	Returned                   // the assistant goes on
	Others                     // somebody besides the customer has begun to speak to both
	Bid                        // and has said something that the assistant may answer
	Underway                   // a tool runs in the background
	Answered                   // it doesn't any more, and what it has answered can be told
	Speaks                     // a model that decides by itself when it speaks has begun to
	Language                   // the customer speaks another language from here on: Text (ISO 639-1)
	Judged                     // an external detector has judged how likely it is that a turn with this Text is over: Over

	// What a recognizer that finds turns says about the customer's. N is the utterance in whose audio it found that, and Text
	// is that utterance's text, if the recognizer gives it.
	Started // they have begun to speak
	Eager   // they may have finished
	Resumed // they had not
	Ended   // they have

	Token     // the model wrote something
	Sentence  // a sentence is there: Text
	Thought   // the model is done: Failed, Text (of what it said, where no Sentence told)
	Sounded   // the first sound of the reply left
	Played    // a part of it was played to its end
	ToolBegan // a tool runs
	ToolEnded // it doesn't any more
	Await     // somebody waits until what was said so far is played
	Collect   // keys are to be collected: Wait, Key (the one that ends it)
	Leave     // the call ends when the reply has been played: Reason
	Firm      // whether the reply can't be cut off any more: Final
	Handed    // another assistant goes on when the reply has been played: Manner
	Spoken    // a part of it was given to the playout by who thought it
)

// Action is something to do. Its kind determines which fields count.
type Action struct {
	Kind    ActionKind
	Purpose Purpose
	Reply   int
	N       int
	Text    string
	From    time.Duration // when it began
	Last    time.Duration // when it ended
	Early   bool          // the turn has not ended yet: tools wait for Commit
	Pressed bool          // a key ended it
	Join    bool          // nothing of the reply was heard, and what it answered goes on
	Over    bool          // the call is over with it
	Machine bool
	Who     Answerer
	Said    []Said // where a text may still be found: what Text consists of
	Heard   []int  // the utterances that Text consists of
	Digits  string // the number that Text tells, where one was asked for
	Reason  parley.EndedReason
}

// ActionKind says what to do.
type ActionKind uint8

// The actions, each with the fields that it uses.
const (
	OpenRecognizer  ActionKind = iota // let the recognizer hear utterance N, from a little before
	CloseRecognizer                   // the utterance is over
	Partial                           // what the customer is saying has changed: Text
	Note                              // what the customer said stands in the transcript, unanswered: Text, From, Said, Heard
	Forget                            // utterance N was none

	// begin a Reply by thinking: Purpose, Text, From and Last (of what is answered, or of the silence that is broken), Early, Said, Heard,
	// Digits
	Think
	Commit // the turn that an early Reply answers has ended
	GiveUp // end the thinking of Reply
	Say    // say a fixed sentence as a part of Reply: Purpose
	Speak  // say a sentence of Reply that was thought: Text
	Cut    // Reply is cut off: Join, Over
	Finish // Reply was played to its end

	// speech that is Sure silences the reply with the very next packet, before this machine has heard about it
	Arm
	Disarm    // it doesn't
	Hold      // be silent from the next packet on
	Resume    // go on where it stopped
	Flush     // leave out what was not played yet of Reply
	Drained   // who waits for Reply to be played may go on
	Nod       // say a word of listening: it is no reply, and nobody waits for it
	Collected // the keys: Reply, Text, Pressed

	AnsweredBy  // who took the call: Machine, Who, Text (why); what was done about it: Text
	Press       // press the keys of Text
	IgnoreTones // tones matter no more
	Enter       // another assistant speaks and listens from here on
	HangUp      // the call is over: Reason
)

// Purpose says what a reply, or a fixed sentence, is for.
type Purpose uint8

// The purposes.
const (
	Answer       Purpose = iota
	Greeting             // the initial message
	Reengagement         // the customer is silent
	Apology              // the customer was not understood
	Voicemail            // the message for a machine
	Entrance             // another assistant goes on
	Return               // the assistant goes on after a person
	Screened             // a call screener wants to know who is calling, and why
	Chosen               // a menu offers keys, and none seems to be the one
	Invited              // somebody besides the customer has said something, or a tool has answered in the background
	Filler               // the reply is slow
	Moment               // a tool is running
	StillOn              // it is still running
	StillThere           // the fixed sentence of re-engagement
	Failure              // the model failed
)
