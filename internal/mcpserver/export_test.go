package mcpserver

// Fills are the functions that complete what was sent.
var Fills = fills
