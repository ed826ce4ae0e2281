package search

import (
	"context"

	"parley/internal/parley"
	"parley/internal/store"
)

// Text is what was read from one of the user's documents, as passages in their order: a page of them.
func (x *Index) Text(ctx context.Context, userID, knowledgebaseID, documentID int64, p store.Page) ([]parley.Passage, error) {
	d, err := x.DB.Document(ctx, userID, knowledgebaseID, documentID)
	if err != nil {
		return nil, err
	}
	var list []Chunk
	err = x.DB.SQL().NewSelect().Model(&list).Join("JOIN documents AS d ON d.id = c.document_id").
		Where("c.document_id = ? AND c.run = d.live", d.ID).
		Order("c.position").Limit(int64(p.Size)).Offset(int64((p.Number - 1) * p.Size)).Scan(ctx)
	out := make([]parley.Passage, len(list))
	for i, c := range list {
		out[i] = parley.Passage{DocumentID: d.ID, DocumentName: d.Name, Text: c.Text, Source: parley.NewSource(c.URL, c.Page, c.Heading)}
	}
	return out, err
}
