package console

import (
	"fmt"
	"io"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/web"
)

// voicemailView is the page of the message that somebody has spoken for the voicemails that an assistant reaches.
type voicemailView struct {
	*parley.Assistant
	recorded *parley.VoicemailRecording // nil: there is none
	wrong    string                     // with the file that was sent
}

func (v *voicemailView) path(more string) string { return assistantPath(v.ID, "/voicemail"+more) }

// recordedFor is how long a recorded message takes: no less than a second, as it isn't empty.
func recordedFor(v *parley.VoicemailRecording) string {
	return lasting(max(1, (v.DurationMS+500)/1000))
}

// recordedMessage is the recorded message of one of the user's assistants, nil where there is none.
func (c *Console) recordedMessage(r *request, assistantID int64) (*parley.VoicemailRecording, error) {
	v, err := c.DB.VoicemailRecording(r.Context(), r.UserID(), assistantID)
	if store.IsNotFound(err) {
		return nil, nil
	}
	return v, err
}

func (c *Console) voicemailView(r *request) (*voicemailView, error) {
	a, err := c.DB.Assistant(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	recorded, err := c.recordedMessage(r, a.ID)
	return &voicemailView{Assistant: a, recorded: recorded}, err
}

const voicemailTitle = "Recorded voicemail message"

func (c *Console) voicemailPage(r *request) (*answer, error) {
	v, err := c.voicemailView(r)
	if err != nil {
		return nil, err
	}
	return show(voicemailTitle, voicemailPage(v)), nil
}

// voicemailKeep takes the WAV file of a form in, in place of the former one.
func (c *Console) voicemailKeep(r *request) (*answer, error) {
	v, err := c.voicemailView(r)
	if err != nil {
		return nil, err
	}
	body := r.upload(parley.VoicemailUpload)
	parts, err := r.MultipartReader()
	if err != nil {
		return nil, formError(err)
	}
	var refused error
	v.wrong = "Choose a WAV file first."
	for {
		part, err := parts.NextPart() // skips what is left of the one before
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, formError(err)
		}
		if fileName(part) == "" { // a box without a file
			continue
		}
		v.wrong = ""
		if _, refused = c.Calls.KeepVoicemail(r.Context(), r.UserID(), v.ID, part); refused != nil && body.Err != nil {
			return nil, formError(body.Err)
		}
	}
	if wrong, ok := fieldErrors(refused); ok {
		v.wrong = (&fields{errors: wrong}).wrong("file")
	} else if refused != nil {
		return nil, refused
	}
	if v.wrong != "" {
		return invalid(voicemailTitle, voicemailPage(v)), nil
	}
	return see(v.path(""), "recorded"), nil
}

// voicemailRecording streams the recorded message, or the range of it that a player asks for.
func (c *Console) voicemailRecording(r *request) (*answer, error) {
	v, o, err := c.Calls.OpenVoicemail(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	defer o.Close()
	web.SendRecording(r.w, r.Request, fmt.Sprintf("voicemail-%d", v.AssistantID), parley.Time(v.CreatedAt).Time(), o)
	return nil, nil
}

func (c *Console) voicemailDelete(r *request) (*answer, error) {
	if err := c.Calls.DropVoicemail(r.Context(), r.UserID(), r.id("id")); err != nil {
		return nil, err
	}
	return see(assistantPath(r.id("id"), "/voicemail"), "unrecorded"), nil
}

// voicemailGlimpses are what the editor's fold of ringing and voicemail shows.
func (e *editor) voicemailGlimpses() []glimpse {
	list := []glimpse{e.glimpse("ringing_time", "Ring time", "s"), e.glimpse("end_call_on_voicemail", "End at a voicemail"),
		e.glimpse("voice_mail_message", "Message")}
	if e.recorded != nil {
		list = append(list, glimpse{label: "Recording", value: recordedFor(e.recorded), set: true})
	}
	return list
}
