package parley

// Finding is one line of what 'parley doctor' says about a server.
type Finding struct {
	State string // DoctorOK, DoctorNote or DoctorFail
	What  string
	Text  string
	// Part is what it is about, where a vendor has several: model, voice or recognizer; "" for all that it does.
	Part string
}

// The states of the doctor's findings.
const (
	DoctorOK   = "ok"
	DoctorNote = "note" // it works, and something is worth knowing
	DoctorFail = "FAIL"
)
