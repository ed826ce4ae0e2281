package api

import (
	"context"
	"fmt"
	"io"

	"parley/internal/parley"
	"parley/internal/web"
)

func (a *API) voicemailRoutes() {
	const tag, path, missing = "Assistants", "/user/assistant/{id}/voicemail-recording", "This assistant has no recorded message"
	handle(a, op{Method: "PUT", Path: path, Name: "keepVoicemailRecording", Tag: tag, NotFound: "Assistant not found",
		Upload: parley.VoicemailUpload, File: "file", Body: none{},
		Summary: "Have a WAV file (16-bit, at most 60 s) left on voicemails in place of voice_mail_message"}, a.keepVoicemail)
	handle(a, op{Method: "GET", Path: path, Name: "getVoicemailRecording", Tag: tag, NotFound: missing, Stream: "audio/wav",
		Summary: "The recorded message for voicemails, as WAV"}, a.getVoicemail)
	handle(a, op{Method: "DELETE", Path: path, Name: "deleteVoicemailRecording", Tag: tag, NotFound: missing,
		Summary: "Have voice_mail_message spoken again"}, a.deleteVoicemail)
}

func (a *API) keepVoicemail(ctx context.Context, r *request, in *byID) (*messageData[*parley.VoicemailRecording], error) {
	var kept *parley.VoicemailRecording
	if r.Form != nil {
		_, err := r.Form.fields(func(name string, content io.Reader) (err error) {
			if name == "file" && kept == nil {
				kept, err = a.Calls.KeepVoicemail(ctx, r.UserID(), in.ID, content)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if kept == nil {
		return nil, parley.Fields{
			{Name: "file", Messages: []string{"The file field is required: send a form (multipart/form-data) with a WAV file."}}}.Err()
	}
	return &messageData[*parley.VoicemailRecording]{"Recorded message saved successfully", kept}, nil
}

func (a *API) getVoicemail(ctx context.Context, r *request, in *byID) (*struct{}, error) {
	v, o, err := a.Calls.OpenVoicemail(ctx, r.UserID(), in.ID)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	web.SendRecording(r.W, r.Request, fmt.Sprintf("voicemail-%d", v.AssistantID), parley.Time(v.CreatedAt).Time(), o)
	return nil, errAnswered
}

func (a *API) deleteVoicemail(ctx context.Context, r *request, in *byID) (*notice, error) {
	return &notice{"Recorded message deleted successfully"}, a.Calls.DropVoicemail(ctx, r.UserID(), in.ID)
}
