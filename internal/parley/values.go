package parley

// Values are all values of the closed sets that answers show, in the order of their declaration: the API reference
// names them.

func values[S ~string](list ...S) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return out
}

// Values are all types of calls.
func (CallType) Values() []string { return values(CallInbound, CallOutbound, CallWeb) }

// Values are all states of calls.
func (CallStatus) Values() []string {
	return values(CallInitiated, CallRinging, CallInProgress, CallCompleted, CallBusy, CallNoAnswer, CallFailed,
		CallCanceled)
}

// Values are all reasons for the end of a call, and "" while it is live.
func (EndedReason) Values() []string {
	return values("", CustomerHangup, AssistantHangup, APIHangup, Transferred, MaxDuration, MaxSilence, Voicemail,
		LineBusy, NoAnswer, Rejected,
		Unreachable, Canceled, InsufficientBalance, ProviderFailure, MediaTimeout, NodeLost, Shutdown)
}

// Values are all who may answer.
func (AnsweredBy) Values() []string { return values(AnsweredUnknown, AnsweredHuman, AnsweredMachine) }

// Values are all states of campaigns.
func (CampaignStatus) Values() []string {
	return values(CampaignDraft, CampaignInProgress, CampaignStopped, CampaignEnded)
}

// Values are all types of conversations.
func (ConversationType) Values() []string {
	return values(TestConversation, WidgetConversation, WhatsAppConversation, APIConversation)
}

// Values are all kinds of events.
func (EventKind) Values() []string {
	return values(EventCallCompleted, EventCallInbound, EventCallInboundCompleted, EventConversationEnded,
		EventBalanceLow,
		EventPublicBudgetLow, EventCampaignCompleted, EventCampaignNotStarted, EventAlertRaised, EventAlertResolved)
}

// Values are all kinds of alerts.
func (AlertKind) Values() []string {
	return values(AlertFailures, AlertLatency, AlertSpend, AlertBalance, AlertSilence)
}

// Values are all states of deliveries.
func (DeliveryStatus) Values() []string {
	return values(DeliveryPending, DeliveryDelivered, DeliveryFailed)
}

// Values are all states of knowledgebases.
func (KnowledgeStatus) Values() []string {
	return values(KnowledgeEmpty, KnowledgeProcessing, KnowledgeActive, KnowledgeFailed)
}

// Values are all types of documents.
func (DocumentType) Values() []string { return values(Website, PDF, TXT, DOCX) }

// Values are all states of leads.
func (LeadStatus) Values() []string {
	return values(LeadCreated, LeadScheduled, LeadProcessing, LeadCompleted, LeadRescheduled, LeadExhausted,
		LeadBlacklisted)
}

// Values are all outcomes of a lead's calls.
func (Outcome) Values() []string {
	return values(OutcomeAnswered, OutcomeVoicemail, OutcomeBusy, OutcomeNoAnswer, OutcomeFailed, OutcomeCanceled)
}

// Values are all kinds of ledger entries.
func (LedgerKind) Values() []string {
	return values(Credit, MessageCharge, Refund, RentCharge, SMSCharge, WhatsAppCharge, CallCharge, CarrierCharge)
}

// Values are all types of numbers.
func (NumberType) Values() []string { return values(NumberNormal, NumberSIP, NumberCallerID) }

// Values are all states of text messages.
func (SMSStatus) Values() []string {
	return values(SMSQueued, SMSSent, SMSDelivered, SMSUndelivered, SMSFailed)
}
