package store

// Callers must tell a row that is there already from other failures. They ask by what the row is; the names of tables and indices
// stay here.

// IsSecondCall says whether err means that a lead's attempt has a call already.
func IsSecondCall(err error) bool {
	return violates(err, "calls.lead_id, calls.attempt", "calls_attempt")
}

// IsSecondConversation says whether err means that a customer has an open conversation with the assistant already.
func IsSecondConversation(err error) bool {
	return violates(err, "conversations.assistant_id", "conversations_customer")
}

// IsSecondMessage says whether err means that a conversation has the message with this external id already.
func IsSecondMessage(err error) bool {
	return violates(err, "messages.conversation_id, messages.external_id", "messages_external")
}

// IsSecondAnswer says whether err means that an account has a canned answer of this name already.
func IsSecondAnswer(err error) bool {
	return violates(err, "canned_answers.user_id, canned_answers.name", "canned_answers_name")
}

// IsSecondWhatsApp says whether err means that WhatsApp's message is stored already.
func IsSecondWhatsApp(err error) bool {
	return violates(err, "whatsapp_messages.wamid", "whatsapp_messages_wamid")
}
