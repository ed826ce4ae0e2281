// Package voicetest tests conversations: a leg on fake time, and dialogue scripts.
package voicetest
