// Package parley holds the product's vocabulary: users, assistants, conversations, messages, tools, money, with the
// rules that make each of them valid and the errors that say what is wrong.
//
// It is pure: no I/O, no SQL, no HTTP. Everything else in the house imports it; it imports nothing of the house.
// Types that are stored and sent carry their json and bun tags here, so that each of them is written once. The tags
// minLength, maxLength, minimum, maximum, enum, pattern, format and default are the rules of a field: internal/form
// enforces them and the API reference prints them.
package parley
