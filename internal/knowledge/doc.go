// Package knowledge makes documents answer: it reads websites and files, and cuts them into the passages that package search finds.
//
// Reading has three steps, and each can be looked at alone:
//
//	Extractor.Extract   a PDF, Word or text file, in a child process with limits  -> Text
//	Crawler.Crawl       a website, through the guarded way out                    -> Text
//	Split               Text.Sections, a pure function                           -> []Chunk
//
// A [Text] is a list of sections that remember where they stand: below which headings, on which page, at which address. Within a section
// an empty line parts paragraphs, and a table has a row on each line with " | " between its cells; [Split] relies on that.
//
// What can't be read is a [Failure], whose words are for the person who gave the document and say what to do about it.
package knowledge
