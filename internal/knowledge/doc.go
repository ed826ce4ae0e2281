// Package knowledge keeps the documents of users and lets assistants answer from them: [Library] takes in uploads and
// websites, has package document read and cut them, and stores their passages, which package search finds. [Crawler]
// gets the pages of a website, through the guarded way out.
package knowledge
