// Package farend is the far end of a server without a trunk: somebody who answers, a busy line, a voicemail, in this process.
package farend
