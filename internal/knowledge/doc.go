// Package knowledge keeps the documents of users and makes them answer: [Library] takes uploads and websites in, has
// package document read and cut them, and stores their passages, which package search finds. [Crawler] gets the pages
// of a website, through the guarded way out.
package knowledge
