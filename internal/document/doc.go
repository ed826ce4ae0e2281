// Package document reads documents: files and web pages become sections, and these become passages. It knows nothing of
// users and stores nothing.
//
//	Extractor.Extract   a PDF, Word or text file   -> Text
//	Extractor.Page      a web page                 -> Page, a Text with its links
//	Extractor.Cut       the sections of a Text     -> []Chunk
//
// Documents are strangers': each of the three runs in a child process with limits, which is this program again
// ([Child]). [Split] is what Cut has its child do, a pure function.
//
// A [Text] is a list of sections that remember where they stand: below which headings, on which page, at which
// address. Within a section an empty line parts paragraphs, and a table has a row on each line with " | " between its
// cells; [Split] relies on that.
//
// If a document can't be read, the error is a [Failure]: a sentence for the person who gave the document, which says
// what to do about it.
package document
