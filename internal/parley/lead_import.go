package parley

import "github.com/uptrace/bun"

// ImportState says how an import of leads stands.
type ImportState string

// The states.
const (
	ImportUploading ImportState = "uploading" // its file is on the way into blob storage
	ImportRunning   ImportState = "running"   // its file is here: the server finishes it
	ImportDone      ImportState = "done"
	ImportFailed    ImportState = "failed" // Failure says why; what was imported stays
)

// LeadImport is a list of leads on its way into a campaign. It stands from before the file is stored until a week after
// its end, so that nothing of a list is lost when the browser leaves or the server dies.
type LeadImport struct {
	bun.BaseModel `bun:"imports"`

	ID         int64 `bun:",pk,autoincrement"`
	UserID     int64
	CampaignID int64
	Blob       string // the file, "" once it is removed
	Size       int64  // of the file in bytes
	Options    string // how the list is to be read, in JSON, as its room keeps it
	State      ImportState
	Rows       int // read so far
	Imported   int
	Skipped    int
	ReadBytes  int64
	Errors     string // the first of the rows that were left out, in JSON
	Failure    string
	Owner      string // the process that works on it
	LeaseUntil Time
	Tries      int // of processes since it last got on
	CreatedAt  Time
	EndedAt    Time
}
