package voice

// Cache keeps the sound of fixed sentences (greetings, fillers) for all sessions. It is safe for concurrent use; its zero value is ready.
type Cache struct{}
