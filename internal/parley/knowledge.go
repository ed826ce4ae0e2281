package parley

import (
	"strconv"
	"strings"

	"github.com/uptrace/bun"
)

// KnowledgeStatus is how far a knowledgebase or a document is.
type KnowledgeStatus string

// The statuses. A document is never empty.
const (
	KnowledgeEmpty      KnowledgeStatus = "empty"
	KnowledgeProcessing KnowledgeStatus = "processing"
	KnowledgeActive     KnowledgeStatus = "active"
	KnowledgeFailed     KnowledgeStatus = "failed"
)

// Label is the status for people.
func (s KnowledgeStatus) Label() string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(string(s[:1])) + string(s[1:])
}

// Knowledgebase is a set of documents that assistants answer from.
type Knowledgebase struct {
	bun.BaseModel `bun:"knowledgebases" json:"-"`

	ID          int64           `bun:",pk,autoincrement" json:"id" readOnly:"true"`
	UserID      int64           `json:"-"`
	Name        string          `json:"name" required:"true" maxLength:"255"`
	Description *string         `json:"description" maxLength:"255"`
	Status      KnowledgeStatus `bun:"-" json:"status" readOnly:"true"`
	StatusLabel string          `bun:"-" json:"status_label" readOnly:"true"`
	CreatedAt   Time            `json:"created_at" readOnly:"true"`
	UpdatedAt   Time            `json:"updated_at" readOnly:"true"`

	KnowledgeCounts
}

// KnowledgeCounts are what is counted of a knowledgebase.
type KnowledgeCounts struct {
	Documents  int `bun:",scanonly" json:"documents_count" readOnly:"true"`
	Assistants int `bun:",scanonly" json:"assistants_count" readOnly:"true"`
	Processing int `bun:",scanonly" json:"-"` // of the documents
	Failed     int `bun:",scanonly" json:"-"`
}

// Derive says the status that follows from the documents: none, any in processing, any failed, else active.
func (k *Knowledgebase) Derive() {
	switch {
	case k.Documents == 0:
		k.Status = KnowledgeEmpty
	case k.Processing > 0:
		k.Status = KnowledgeProcessing
	case k.Failed > 0:
		k.Status = KnowledgeFailed
	default:
		k.Status = KnowledgeActive
	}
	k.StatusLabel = k.Status.Label()
}

// DocumentType is what a document is made of.
type DocumentType string

// The types of document.
const (
	Website DocumentType = "website"
	PDF     DocumentType = "pdf"
	TXT     DocumentType = "txt"
	DOCX    DocumentType = "docx"
)

// Label is the type for people.
func (t DocumentType) Label() string {
	return map[DocumentType]string{Website: "Website", PDF: "PDF", TXT: "Text", DOCX: "Word"}[t]
}

// MaxDocument is how large a file may be, in bytes.
const MaxDocument = 20 << 20

// Document is a website or a file in a knowledgebase.
type Document struct {
	bun.BaseModel `bun:"documents" json:"-"`

	ID              int64           `bun:",pk,autoincrement" json:"id"`
	KnowledgebaseID int64           `json:"-"`
	Name            string          `json:"name"`
	Description     *string         `json:"description"`
	Type            DocumentType    `json:"type"`
	TypeLabel       string          `bun:"-" json:"type_label"`
	Status          KnowledgeStatus `json:"status"`
	StatusLabel     string          `bun:"-" json:"status_label"`
	Error           *string         `json:"error"`                    // why it failed, and what to do
	Warnings        []string        `bun:"type:json" json:"warnings"` // what of it was left out or may be wrong
	Progress        Progress        `bun:"embed:progress_" json:"progress"`
	ChunksCount     int             `json:"chunks_count"`
	// DuplicateOf is an older document of the knowledgebase with the same text. Both are kept; a search shows a
	// passage once.
	DuplicateOf *int64 `bun:",scanonly" json:"duplicate_of"`
	CreatedAt   Time   `json:"created_at"`
	UpdatedAt   Time   `json:"updated_at"`

	URL                string   `bun:"url" json:"url" doc:"Of a website: where the crawl begins."`
	Links              []string `bun:"type:json" json:"links" doc:"Of a website: exactly these pages."`
	RelativeLinksLimit int      `json:"relative_links_limit"`
	Blob               string   `json:"-"`
	Size               int64    `json:"size" doc:"Of a file: bytes."`
	Hash               string   `json:"-"`
	Run                int64    `json:"-"` // counts its processings
	Live               int64    `json:"-"` // the run whose passages are found
	Embedder           string   `json:"-"`
}

// Progress is how much of a document's processing is done: pages of a website, passages of a file.
type Progress struct {
	Done  int `json:"done"`
	Total int `json:"total"`
}

// Complete adds the labels.
func (d *Document) Complete() {
	d.TypeLabel, d.StatusLabel = d.Type.Label(), d.Status.Label()
}

// DocumentInput is what a document is made from. Links are objects on the way in.
type DocumentInput struct {
	Name               string       `json:"name" required:"true" maxLength:"255"`
	Description        *string      `json:"description" maxLength:"255"`
	Type               DocumentType `json:"type" required:"true" enum:"website,pdf,txt,docx"`
	URL                string       `json:"url" maxLength:"2048" format:"http-url" doc:"For a website: where the crawl begins; required without links."`
	Links              []Link       `json:"links" maxItems:"50" doc:"For a website: exactly these pages; required without url."`
	RelativeLinksLimit int          `json:"relative_links_limit" default:"10" minimum:"1" maximum:"50" doc:"How many links of the same site are followed from url."`
}

// Link is one page of a website.
type Link struct {
	Link string `json:"link" required:"true" maxLength:"2048" format:"http-url"`
}

// Check adds what the fields' own rules can't see. file says whether a file came.
func (d *DocumentInput) Check(f *Fields, file bool) {
	switch {
	case d.Type == "" || f.Has("type"):
	case d.Type != Website && !file && !f.Has("file"):
		f.Add("file", "is required.")
	case d.Type == Website && d.URL == "" && len(d.Links) == 0 && !f.Has("url") && !f.Has("links"):
		f.Add("url", "is required when links is not present.")
		f.Add("links", "is required when url is not present.")
	}
}

// Document is a new document of this input, which is valid.
func (d *DocumentInput) Document() *Document {
	doc := &Document{Name: d.Name, Description: d.Description, Type: d.Type, Links: []string{},
		RelativeLinksLimit: d.RelativeLinksLimit}
	if d.Type == Website {
		doc.URL = d.URL
		for _, l := range d.Links {
			doc.Links = append(doc.Links, l.Link)
		}
	}
	return doc
}

// Passage is a piece of a document that answers a question.
type Passage struct {
	DocumentID   int64   `json:"document_id"`
	DocumentName string  `json:"document_name"`
	Text         string  `json:"text"`
	Score        float64 `json:"score"` // 0 to 1: how high it stood in each ranking, together
	Source
}

// Source is where a passage stands.
type Source struct {
	Source  string `json:"source"` // for people: the page's address, "page 3", or the heading
	URL     string `json:"url,omitempty"`
	Page    int    `json:"page,omitempty"`
	Heading string `json:"heading,omitempty"`
}

// NewSource says where a passage stands; any part may be empty.
func NewSource(url string, page int, heading string) Source {
	s := Source{Source: url, URL: url, Page: page, Heading: heading}
	switch {
	case url != "":
	case page > 0 && heading != "":
		s.Source = "page " + strconv.Itoa(page) + ", " + heading
	case page > 0:
		s.Source = "page " + strconv.Itoa(page)
	default:
		s.Source = heading
	}
	return s
}

// MessageSource is a passage that a reply was given, as the message's record keeps it.
type MessageSource struct {
	DocumentID   int64  `json:"document_id"`
	DocumentName string `json:"document_name"`
	Source
}
