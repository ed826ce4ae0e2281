package parley

import (
	"slices"
	"strconv"
	"time"

	"github.com/uptrace/bun"
)

// Assistant is who talks: its prompt, voice, knowledge, tools and manners.
type Assistant struct {
	bun.BaseModel `bun:"assistants" json:"-"`

	ID            int64  `bun:",pk,autoincrement" json:"id" readOnly:"true"`
	UUID          string `bun:"uuid" json:"uuid" readOnly:"true" format:"uuid"`
	UserID        int64  `json:"user_id" readOnly:"true"`
	Name          string `json:"name" required:"true" maxLength:"255"`
	PhoneNumberID *int64 `json:"phone_number_id" doc:"One of your numbers; for an inbound assistant not a caller ID, and not used by another inbound assistant."`
	EngineID      *int64 `bun:"-" json:"engine_id" readOnly:"true"`
	SynthesizerID *int64 `bun:"-" json:"synthesizer_id" readOnly:"true"`
	TranscriberID *int64 `bun:"-" json:"transcriber_id" readOnly:"true"`
	VoiceID       int64  `json:"voice_id" required:"true" doc:"Must support the assistant's language and mode. In pipeline mode it may be a voice of an endpoint of yours, by its id among the voices."`
	InstanceID    int64  `bun:"-" json:"instance_id" readOnly:"true"`

	Variables  map[string]string `bun:"-" json:"variables" maxProperties:"200" format:"variables" doc:"Values of {{name}} in the prompt and the initial message."`
	Sealed     []byte            `bun:"sealed_variables" json:"-"`    // Variables as they are stored
	Unsealed   map[string]string `bun:"variables,type:json" json:"-"` // Variables as former versions stored them
	Type       string            `json:"type" required:"true" enum:"inbound,outbound"`
	Status     string            `json:"status" default:"inactive" enum:"active,inactive"`
	Mode       string            `json:"mode" required:"true" enum:"pipeline,multimodal,dualplex"`
	Language   string            `bun:"-" json:"language" readOnly:"true" doc:"ISO 639-1 code of language_id."`
	LanguageID int64             `json:"language_id" required:"true"`
	// What the customer may change to in the middle of a call.
	SecondaryLanguageIDs []int64 `bun:"secondary_language_ids,type:json" json:"secondary_language_ids" maxItems:"3" uniqueItems:"true" doc:"Further languages that the customer may speak: the assistant switches to them during a call."`
	Timezone             string  `json:"timezone" required:"true" maxLength:"64" format:"timezone" doc:"IANA time zone."`
	SystemPrompt         string  `json:"system_prompt" required:"true" maxLength:"100000"`
	PromptCurrentTime    bool    `json:"prompt_current_time" default:"true" doc:"Tell the model the date, weekday, time and time zone at the end of the prompt, unless the prompt has both {{current_date}} and {{current_time}}."`
	// PromptVersion counts the changes of system_prompt and initial_message.
	PromptVersion  int    `json:"prompt_version" readOnly:"true"`
	InitialMessage string `json:"initial_message" maxLength:"1000" doc:"What the assistant says first."`

	LLMModelID            *int64 `bun:"llm_model_id" json:"llm_model_id" doc:"Required in pipeline mode. There it may be an endpoint of yours, by its id among the models."`
	MultimodalModelID     *int64 `json:"multimodal_model_id" doc:"Required in multimodal and dualplex mode."`
	SynthesizerProviderID *int64 `json:"synthesizer_provider_id" doc:"null: the voice's provider."`
	TranscriberProviderID *int64 `json:"transcriber_provider_id" doc:"null: the language's default. It may be an endpoint of yours, by its id among the providers. Pipeline mode only."`

	// Endpoints of the account's own, which are named in the above by ids of theirs: while these are set, the above is what
	// takes over from them.
	LLMEndpointID         *int64     `bun:"llm_endpoint_id" json:"-"`
	VoiceEndpointID       *int64     `json:"-"`
	VoiceEndpointPlace    int64      `json:"-"` // of the voice, among the codes that the endpoint ever had
	TranscriberEndpointID *int64     `json:"-"`
	Endpoints             []Endpoint `bun:"-" json:"-"` // those that it names, filled in by the store

	// What takes over when one of the above fails, in order; the server's own lists count where they are empty.
	FallbackLLMModelIDs            []int64 `bun:"fallback_llm_model_ids,type:json" json:"fallback_llm_model_ids" maxItems:"3" uniqueItems:"true" doc:"Models that take over when llm_model_id fails, in order; empty: the server's."`
	FallbackMultimodalModelIDs     []int64 `bun:"fallback_multimodal_model_ids,type:json" json:"fallback_multimodal_model_ids" maxItems:"3" uniqueItems:"true" doc:"The same for multimodal_model_id; models of the assistant's mode."`
	FallbackVoiceIDs               []int64 `bun:"fallback_voice_ids,type:json" json:"fallback_voice_ids" maxItems:"3" uniqueItems:"true" doc:"The same for voice_id; voices of the assistant's language and mode."`
	FallbackTranscriberProviderIDs []int64 `bun:"fallback_transcriber_provider_ids,type:json" json:"fallback_transcriber_provider_ids" maxItems:"3" uniqueItems:"true" doc:"The same for transcriber_provider_id; providers that understand the language. Pipeline mode only."`

	KnowledgebaseID   *int64            `json:"knowledgebase_id"`
	KnowledgebaseMode string            `json:"knowledgebase_mode" default:"function_call" enum:"function_call,prompt" doc:"prompt: in pipeline mode only."`
	ToolIDs           []int64           `bun:"-" json:"tool_ids" maxItems:"100" uniqueItems:"true" doc:"Ids of your mid-call tools."`
	MidCallTools      []Tool            `bun:"-" json:"-"` // those of ToolIDs, filled in by the store
	Tools             []AssistantTool   `bun:"tools,type:json" json:"tools" maxItems:"200" inline:"data" doc:"Built-in tools; their settings may also stand in an object named data; in answers also the mid-call tools of tool_ids, as type mid_call."`
	Keywords          []string          `bun:"type:json" json:"keywords" maxItems:"200" maxLength:"100" doc:"Words that the recognizer should listen for, such as names."`
	Pronunciations    map[string]string `bun:"type:json" json:"pronunciations" maxProperties:"500" doc:"From a word to a spelling that makes the voice pronounce it right."`

	LLMTemperature     Decimal `bun:"llm_temperature" json:"llm_temperature" default:"0.10" minimum:"0" maximum:"1"`
	VoiceStability     Decimal `json:"voice_stability" default:"0.70" minimum:"0" maximum:"1" doc:"For voices that support it, as the lists of voices and synthesizer providers say."`
	VoiceSimilarity    Decimal `json:"voice_similarity" default:"0.50" minimum:"0" maximum:"1" doc:"For voices that support it, too."`
	SpeechSpeed        Decimal `json:"speech_speed" default:"1.00" minimum:"0.7" maximum:"1.2"`
	AmbientSound       string  `json:"ambient_sound" default:"off" enum:"off,office,city,forest,crowded_room,cafe,nature"`
	AmbientSoundVolume Decimal `json:"ambient_sound_volume" default:"0.50" minimum:"0" maximum:"1"`

	AllowInterruptions           bool         `json:"allow_interruptions" default:"true" doc:"May be false in pipeline mode only."`
	MinInterruptWords            *int64       `json:"min_interrupt_words" minimum:"0" maximum:"10"`
	InterruptSensitivity         float64      `json:"interrupt_sensitivity" default:"0.5" minimum:"0" maximum:"5"`
	EndpointType                 string       `json:"endpoint_type" default:"vad" enum:"vad,ai"`
	EndpointSensitivity          float64      `json:"endpoint_sensitivity" default:"0.5" minimum:"0" maximum:"5" doc:"Higher ends the customer's turn sooner."`
	Fillers                      Flag         `json:"fillers" default:"0" doc:"May be 1 in pipeline mode only."`
	FillerConfig                 FillerConfig `bun:"type:json" json:"filler_config"`
	Backchannels                 bool         `json:"backchannels" default:"false" doc:"Say a short word such as \"Okay.\" in the pauses of a long story, to show that it listens. May be true in pipeline mode only."`
	Record                       bool         `json:"record" default:"false"`
	EnableNoiseCancellation      bool         `json:"enable_noise_cancellation" default:"true"`
	BackgroundSpeechCancellation bool         `json:"background_speech_cancellation" default:"false" doc:"Ignore voices that are much fainter than the customer's, such as a television. For handsets and headsets: on loudspeakers and in browsers, customers who interrupt sound fainter and may not be heard."`
	WaitForCustomer              bool         `json:"wait_for_customer" default:"false" doc:"Wait for the customer to speak first."`

	MaxDuration          int64  `json:"max_duration" default:"600" minimum:"20" maximum:"3600" doc:"Seconds."`
	MaxSilenceDuration   int64  `json:"max_silence_duration" default:"40" minimum:"1" maximum:"360" doc:"Seconds of silence before the assistant asks whether anybody is there."`
	ReengagementInterval int64  `json:"reengagement_interval" default:"30" minimum:"1" maximum:"600" doc:"Seconds of further silence before it asks again, and then before the call ends."`
	ReengagementPrompt   string `json:"reengagement_prompt" maxLength:"1000"`
	RingingTime          int64  `json:"ringing_time" default:"30" minimum:"1" maximum:"120" doc:"Seconds."`
	EndCallOnVoicemail   Flag   `json:"end_call_on_voicemail" default:"1"`
	VoiceMailMessage     string `json:"voice_mail_message" maxLength:"1000" doc:"Left after the beep, then the call ends."`

	PostCallEvaluation         bool            `json:"post_call_evaluation" default:"true"`
	PostCallSchema             []ExtractedItem `bun:"type:json" json:"post_call_schema" maxItems:"50" default:"[{\"name\":\"status\",\"type\":\"bool\",\"description\":\"Whether the goal of the conversation was reached\"},{\"name\":\"summary\",\"type\":\"string\",\"description\":\"A short summary of the conversation\"}]"`
	PostCallJSONSchema         JSONSchema      `bun:"post_call_json_schema,type:json,nullzero" json:"post_call_json_schema" doc:"What is found out as a JSON Schema (draft 2020-12) of an object, in place of post_call_schema: with lists, nested objects, enum, integer, format. At most 32 KB. Shown of every assistant; of both, the one that is changed counts, post_call_json_schema before post_call_schema. A value that doesn't fit is null, with the reason."`
	PostCallShown              bool            `bun:"-" json:"-"` // PostCallJSONSchema is PostCallSchema, in the other form
	IsWebhookActive            bool            `json:"is_webhook_active" default:"false"`
	WebhookURL                 *string         `bun:"webhook_url" json:"webhook_url" maxLength:"2048" format:"http-url" doc:"Post-call notifications; required when is_webhook_active is true."`
	InboundWebhookURL          *string         `bun:"inbound_webhook_url" json:"inbound_webhook_url" maxLength:"2048" format:"http-url"`
	ConversationEndedURL       *string         `bun:"conversation_ended_webhook_url" json:"conversation_ended_webhook_url" maxLength:"2048" format:"http-url"`
	SendWebhookOnlyOnCompleted bool            `json:"send_webhook_only_on_completed" default:"true"`
	IncludeRecordingInWebhook  bool            `json:"include_recording_in_webhook" default:"true"`

	RequireTests                  bool           `json:"require_tests" default:"false" doc:"Refuse to publish a draft before all tests have passed against it."`
	ConversationInactivityTimeout int64          `json:"conversation_inactivity_timeout" default:"30" minimum:"1" maximum:"1440" doc:"Minutes."`
	WidgetSettings                WidgetSettings `bun:"type:json" json:"widget_settings"`
	FlowsPlatformID               *int64         `bun:"-" json:"flows_platform_id" readOnly:"true"`

	// by which the account orders its assistants: no settings, and in no version
	FolderID *int64  `bun:"-" json:"folder_id" doc:"One of your folders."`
	LabelIDs []int64 `bun:"-" json:"label_ids" maxItems:"50" uniqueItems:"true" doc:"Ids of your labels."`

	DeletedAt Time `json:"deleted_at" readOnly:"true"`
	CreatedAt Time `json:"created_at" readOnly:"true"`
	UpdatedAt Time `json:"updated_at" readOnly:"true"`
}

// FillerConfig holds what is said while a reply is slow, by what the customer said. All four keys are always there.
type FillerConfig struct {
	Neutral  []string `json:"neutral" maxItems:"50" maxLength:"255"`
	Negative []string `json:"negative" maxItems:"50" maxLength:"255"`
	Positive []string `json:"positive" maxItems:"50" maxLength:"255"`
	Question []string `json:"question" maxItems:"50" maxLength:"255"`
}

// ExtractedItem is one thing to be found out from a finished conversation.
type ExtractedItem struct {
	Name        string `json:"name" required:"true" minLength:"3" maxLength:"16" pattern:"^[a-z0-9_]*$" must:"contain only lowercase letters, digits and underscores"`
	Type        string `json:"type" required:"true" enum:"string,number,bool"`
	Description string `json:"description" required:"true" minLength:"3" maxLength:"255"`
}

// WidgetSettings is how the web widget looks and where it may stand.
type WidgetSettings struct {
	Theme          string         `json:"theme" default:"light" maxLength:"50" doc:"light, dark or auto; the widget treats anything else as light."`
	Color          string         `json:"color" default:"#2563eb" maxLength:"50" pattern:"^[#a-zA-Z0-9(),.%/ -]*$" must:"be a colour such as #2563eb"`
	Position       string         `json:"position" default:"bottom-right" maxLength:"50" doc:"bottom-right, bottom-left, top-right or top-left; the widget treats anything else as bottom-right."`
	Mode           string         `json:"mode" default:"chat" enum:"chat,voice,both"`
	Title          string         `json:"title" maxLength:"255"`
	Subtitle       string         `json:"subtitle" maxLength:"255"`
	Placeholder    string         `json:"placeholder" maxLength:"255"`
	AutoOpen       bool           `json:"auto_open" default:"false"`
	AvatarURL      *string        `json:"avatar_url" maxLength:"2048" format:"http-url"`
	AllowedOrigins []string       `json:"allowed_origins" maxItems:"100" maxLength:"255" format:"origin" doc:"Origins such as https://example.com; empty allows all."`
	PreChatFields  []PreChatField `json:"pre_chat_fields" maxItems:"20"`
}

// PreChatField is asked for before a chat begins and fills a variable.
type PreChatField struct {
	Variable string `json:"variable" required:"true" maxLength:"64" pattern:"^[A-Za-z][A-Za-z0-9_]*$" must:"contain only letters, digits and underscores, and start with a letter"`
	Label    string `json:"label" required:"true" maxLength:"255"`
	Type     string `json:"type" default:"text" enum:"text,email,tel,number,textarea"`
	Required bool   `json:"required" default:"false"`
}

// maxKeypadWait is the longest that collect_keypad waits for a key, in seconds.
const maxKeypadWait = 30

// AssistantTool is an entry of an assistant's tools: a built-in one with its settings, or (in answers) a mid-call tool.
type AssistantTool struct {
	Type string `json:"type" required:"true" enum:"end_call,call_transfer,warm_call_transfer,dtmf_input,collect_keypad,assistant_transfer,mid_call"`

	// call_transfer
	PhoneNumber         string `json:"phone_number,omitempty" maxLength:"64" reads:"transfer" doc:"call_transfer: where to, as a number in international format; or an extension of 2 to 6 digits or a sip: address, for calls over your own SIP trunk."`
	Description         string `json:"description,omitempty" maxLength:"1000" doc:"When the assistant uses it."`
	WarmTransfer        *bool  `json:"warm_transfer,omitempty" doc:"call_transfer: call the target first, brief them, and connect both when they accept, as warm_call_transfer does by default."`
	WarmTransferMessage string `json:"warm_transfer_message,omitempty" maxLength:"1000" doc:"call_transfer with warm_transfer: said to the customer before it begins."`
	// warm_call_transfer
	SupervisorPhone        string `json:"supervisor_phone,omitempty" maxLength:"64" reads:"transfer" doc:"warm_call_transfer: who is called, as phone_number."`
	OutboundPhoneID        *int64 `json:"outbound_phone_id,omitempty" doc:"warm_call_transfer: which of your numbers the target is called from; null: the number of the call."`
	CallerIDMode           string `json:"caller_id_mode,omitempty" enum:"outbound_number,customer_number" doc:"warm_call_transfer: whose number the target sees (outbound_number)."`
	HoldMusic              string `json:"hold_music,omitempty" enum:"hold_music,none" doc:"warm_call_transfer: what the customer hears meanwhile (hold_music)."`
	HoldMusicVolume        *int64 `json:"hold_music_volume,omitempty" minimum:"0" maximum:"100" doc:"warm_call_transfer: 80 unless set."`
	HoldMessage            string `json:"hold_message,omitempty" maxLength:"1000" doc:"warm_call_transfer: said to the customer before it begins."`
	SummaryInstructions    string `json:"summary_instructions,omitempty" maxLength:"2000" doc:"warm_call_transfer: how to summarize the conversation for the target."`
	BriefingInitialMessage string `json:"briefing_initial_message,omitempty" maxLength:"1000" doc:"warm_call_transfer: said first to the target."`
	ConnectedMessage       string `json:"connected_message,omitempty" maxLength:"1000" doc:"warm_call_transfer: said to both when they are connected."`
	// collect_keypad
	Timeout *int64 `json:"timeout,omitempty" minimum:"1" maximum:"600" doc:"collect_keypad: seconds to wait for a key (5), at most 30; mid_call: the tool's timeout."`
	StopKey string `json:"stop_key,omitempty" maxLength:"1" doc:"collect_keypad: the key that ends it, # (the default) or *."`
	// assistant_transfer
	AssistantID           *int64 `json:"assistant_id,omitempty" format:"assistant" doc:"assistant_transfer: another of your assistants."`
	MessageBeforeTransfer string `json:"message_before_transfer,omitempty" maxLength:"1000" doc:"assistant_transfer: said first."`
	// mid_call, in answers only (on input only id counts)
	ID       *int64       `json:"id,omitempty"`
	Name     string       `json:"name,omitempty"`
	Endpoint string       `json:"endpoint,omitempty"`
	Method   string       `json:"method,omitempty"`
	Headers  []ToolHeader `json:"headers,omitempty"`
	Schema   []ToolParam  `json:"schema,omitempty"`
}

// MidCall is the type of an AssistantTool that stands for a Tool.
const MidCall = "mid_call"

// AssistantFacts is what the world outside an assistant knows about the ids that it names: nil or false where an id
// is unknown or another user's. Check needs it to judge them.
type AssistantFacts struct {
	Language      *Language
	Languages     map[int64]bool // those of secondary_language_ids that are known
	Voice         *Voice
	LLM           *Model
	Multimodal    *Model
	Transcriber   *Provider       // the provider named by transcriber_provider_id
	Fallback      FallbackFacts   // those of the lists
	Number        *Number         // the number named by phone_number_id
	NumberTaken   bool            // another inbound assistant has that number
	Knowledgebase bool            // knowledgebase_id is the user's
	Tools         map[int64]bool  // those of tool_ids that are the user's
	Assistants    map[int64]bool  // those of the assistant_transfer tools that are the user's
	Numbers       map[int64]bool  // those of the warm_call_transfer tools that are the user's
	Endpoints     []Endpoint      // those that it names and that are the user's
	Kept          map[string]bool // fields in which it names the endpoint that it had
	Folder        bool            // folder_id is the user's
	Labels        map[int64]bool  // those of label_ids that are the user's
}

// FallbackFacts is what is known about the ids in an assistant's lists of what takes over; those that are not there are
// unknown.
type FallbackFacts struct {
	LLMs, Multimodals map[int64]*Model
	Voices            map[int64]*Voice
	Transcribers      map[int64]bool // those that understand the assistant's language
}

// MaxFallbacks is the maximum length of an assistant's lists of what takes over.
const MaxFallbacks = 3

// Check adds what the fields' own rules can't see: rules across fields, and the ids. Fields that failed already are
// left alone.
func (a *Assistant) Check(facts AssistantFacts, f *Fields) {
	pipeline := a.Mode == "pipeline"
	bad := func(name, format string, args ...any) {
		if !f.Has(name) {
			f.Add(name, format, args...)
		}
	}
	selected := func(name string) {
		if !f.Has(name) {
			f.AddText(name, "The selected "+name+" is invalid.")
		}
	}
	a.checkEndpoints(facts, selected, bad)
	a.checkVoice(facts, selected, bad)
	a.checkFallback(facts.Fallback, selected, bad)

	switch {
	case pipeline && a.LLMModelID == nil:
		bad("llm_model_id", "is required when mode is pipeline.")
	case a.LLMModelID != nil && facts.LLM == nil:
		selected("llm_model_id")
	}
	switch {
	case a.MultimodalModelID == nil && (a.Mode == "multimodal" || a.Mode == "dualplex"):
		bad("multimodal_model_id", "is required when mode is %s.", a.Mode)
	case a.MultimodalModelID != nil && facts.Multimodal == nil:
		selected("multimodal_model_id")
	case a.MultimodalModelID != nil && !pipeline && a.Mode != "" && string(facts.Multimodal.Kind) != a.Mode:
		bad("multimodal_model_id", "must name a %s model.", a.Mode)
	}
	if a.PhoneNumberID != nil {
		switch n := facts.Number; {
		case n == nil:
			selected("phone_number_id")
		case a.Type == "inbound" && n.Type == NumberCallerID:
			bad("phone_number_id", "must not be a caller-id number on an inbound assistant.")
		case a.Type == "inbound" && facts.NumberTaken:
			bad("phone_number_id", "is already assigned to another inbound assistant.")
		}
	}
	if a.KnowledgebaseID != nil && !facts.Knowledgebase {
		selected("knowledgebase_id")
	}
	for i, id := range a.ToolIDs {
		if !facts.Tools[id] {
			selected("tool_ids." + strconv.Itoa(i))
		}
	}
	if a.FolderID != nil && !facts.Folder {
		selected("folder_id")
	}
	for i, id := range a.LabelIDs {
		if !facts.Labels[id] {
			selected("label_ids." + strconv.Itoa(i))
		}
	}
	a.checkTools(facts, f)
	if a.Mode != "" && !pipeline {
		if a.KnowledgebaseMode == "prompt" {
			bad("knowledgebase_mode", "may be prompt in pipeline mode only.")
		}
		if a.TranscriberProviderID != nil {
			bad("transcriber_provider_id", "may be set in pipeline mode only.")
		}
		if !a.AllowInterruptions {
			bad("allow_interruptions", "may be false in pipeline mode only.")
		}
		if a.Fillers {
			bad("fillers", "may be 1 in pipeline mode only.")
		}
		if a.Backchannels {
			bad("backchannels", "may be true in pipeline mode only.")
		}
	}
	if a.IsWebhookActive && a.WebhookURL == nil {
		bad("webhook_url", "is required when is_webhook_active is true.")
	}
	a.checkNames(f)
}

func (a *Assistant) checkVoice(facts AssistantFacts, selected func(string), bad func(string, string, ...any)) {
	if facts.Language == nil {
		selected("language_id")
	}
	for i, id := range a.SecondaryLanguageIDs {
		switch name := "secondary_language_ids." + strconv.Itoa(i); {
		case !facts.Languages[id]:
			selected(name)
		case id == a.LanguageID:
			bad(name, "must be another language than language_id.")
		}
	}
	v := facts.Voice
	switch m := facts.Multimodal; {
	case v == nil && a.VoiceEndpointID != nil:
		bad("voice_id", "can't be an endpoint's in this language: no voice of this server speaks it, to take over when the endpoint fails.")
	case v == nil:
		selected("voice_id")
	case facts.Language != nil && v.LanguageID != a.LanguageID:
		bad("voice_id", "must name a voice that speaks the assistant's language.")
	case a.Mode != "" && !slices.Contains(v.Modes, a.Mode):
		bad("voice_id", "must name a voice that serves %s mode.", a.Mode)
	case a.Mode == "multimodal" && m != nil && v.Inside != m.Provider:
		bad("voice_id", "must name a voice of the multimodal model's provider.")
	}
	if p := a.SynthesizerProviderID; p != nil && (v == nil || v.SynthesizerProviderID == nil ||
		*v.SynthesizerProviderID != *p) {
		bad("synthesizer_provider_id", "must be the provider of the voice.")
	}
	if a.TranscriberProviderID != nil && facts.Transcriber == nil {
		selected("transcriber_provider_id")
	}
}

// checkTools judges each built-in tool by the rules of its type, and fills in their defaults.
func (a *Assistant) checkTools(facts AssistantFacts, f *Fields) {
	seen := map[string]bool{}
	for i := range a.Tools {
		t, at := &a.Tools[i], "tools."+strconv.Itoa(i)
		// Several destinations make sense; several of the others would be the same tool twice.
		if several := t.Type == "assistant_transfer" || t.Type == "call_transfer" ||
			t.Type == "warm_call_transfer" || t.Type == MidCall; seen[t.Type] && !several && !f.Has(at+".type") {
			f.Add(at+".type", "has a duplicate value.")
		}
		seen[t.Type] = true
		switch t.Type {
		case "call_transfer":
			checkTarget(&t.PhoneNumber, at+".phone_number", f)
		case "warm_call_transfer":
			t.completeWarm()
			checkTarget(&t.SupervisorPhone, at+".supervisor_phone", f)
			if n := t.OutboundPhoneID; n != nil && !facts.Numbers[*n] {
				f.AddText(at+".outbound_phone_id", "The selected "+at+".outbound_phone_id is invalid.")
			}
		case "collect_keypad":
			if t.Timeout == nil {
				five := int64(5)
				t.Timeout = &five
			} else if *t.Timeout > maxKeypadWait {
				f.Add(at+".timeout", "must not be greater than %d.", maxKeypadWait)
			}
			if t.StopKey == "" {
				t.StopKey = "#"
			}
			if t.StopKey != "#" && t.StopKey != "*" {
				f.Add(at+".stop_key", "must be one of: #, *.")
			}
		case "assistant_transfer":
			switch {
			case t.AssistantID == nil:
				f.Add(at+".assistant_id", "is required.")
			case *t.AssistantID == a.ID || !facts.Assistants[*t.AssistantID]:
				f.AddText(at+".assistant_id", "The selected "+at+".assistant_id is invalid.")
			}
		}
	}
}

// checkTarget judges where a call may be sent, and writes it as it is kept.
func checkTarget(to *string, at string, f *Fields) {
	if target, _, ok := TransferTarget(*to); ok {
		*to = target
	} else if *to == "" {
		f.Add(at, "is required.")
	} else {
		f.Add(at, "must be a phone number in international format, an extension of 2 to 6 digits or a sip: address.")
	}
}

// completeWarm fills in the defaults of a warm_call_transfer.
func (t *AssistantTool) completeWarm() {
	if t.CallerIDMode == "" {
		t.CallerIDMode = "outbound_number"
	}
	if t.HoldMusic == "" {
		t.HoldMusic = "hold_music"
	}
	if t.HoldMusicVolume == nil {
		eighty := int64(80)
		t.HoldMusicVolume = &eighty
	}
}

// Warm is a tool that announces the caller to whoever takes over, as a warm_call_transfer; nil for any other tool.
func (t *AssistantTool) Warm() *AssistantTool {
	switch {
	case t.Type == "warm_call_transfer":
		w := *t
		w.completeWarm()
		return &w
	case t.Type == "call_transfer" && t.WarmTransfer != nil && *t.WarmTransfer:
		w := AssistantTool{Type: t.Type, SupervisorPhone: t.PhoneNumber, Description: t.Description,
			HoldMessage: t.WarmTransferMessage}
		w.completeWarm()
		return &w
	}
	return nil
}

// checkNames refuses the same name twice where a name must say which.
func (a *Assistant) checkNames(f *Fields) {
	seen := map[string]bool{}
	for i, p := range a.PostCallSchema {
		if p.Name != "" && seen[p.Name] {
			f.Add("post_call_schema."+strconv.Itoa(i)+".name", "has a duplicate value.")
		}
		seen[p.Name] = true
	}
}

// ValidTimezone says whether name is an IANA time zone. "Local" and "" are none: they would mean the server's.
func ValidTimezone(name string) bool {
	if name == "" || name == "Local" {
		return false
	}
	_, err := time.LoadLocation(name)
	return err == nil
}

// For is the assistant as somebody with a role may see it. Who may not change it does not learn its secrets: the values
// of its variables, the headers of its tools, and the addresses of its tools and webhooks, which may hold tokens.
func (a *Assistant) For(role Role) *Assistant {
	if role.Includes(RoleEditor) {
		return a
	}
	b := *a
	b.Variables = make(map[string]string, len(a.Variables))
	for name := range a.Variables {
		b.Variables[name] = ""
	}
	b.WebhookURL, b.InboundWebhookURL, b.ConversationEndedURL = nil, nil, nil
	b.MidCallTools = slices.Clone(a.MidCallTools)
	for i := range b.MidCallTools {
		t := &b.MidCallTools[i]
		t.Headers, t.Endpoint, t.OAuth = nil, "", nil
	}
	b.Tools = slices.Clone(a.Tools)
	for i := range b.Tools {
		b.Tools[i].Headers, b.Tools[i].Endpoint = nil, ""
	}
	return &b
}
