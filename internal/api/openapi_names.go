package api

// schemaNames are what types are called in the reference where their own names would not be understood outside of
// this program: the reference's readers, and the code that generators make of it, know nothing of ours. Generic types
// are named by their argument and what stands here ("[]" where the argument is a list).
var schemaNames = map[string]string{
	"Paginated": "Page", "messageData": "Response", "messageData[]": "ListResponse", "data": "Data",
	"data[]":   "List",
	"dataList": "List", "listOf": "List",

	"Account": "SessionUser", "AiState": "AIState", "Assignable": "AssignableNumber",
	"CampaignState": "CampaignStatusResponse", "Customer": "ConversationCustomer",
	"DocumentInput": "NewDocument", "DocumentName": "Document",
	"Erased": "ErasedCustomer", "EventCampaign": "CampaignName",
	"EventLead": "LeadSummary", "FullConversation": "ConversationWithHistory", "FullDelivery": "DeliveryWithLog",
	"Group": "AssistantGroup", "Key": "APIKey", "KeyList": "APIKeyList",
	"CreatedKey": "CreatedAPIKey", "LeadChange": "Lead", "None": "Empty", "Notice": "MessageOnly",
	"Offer": "PurchasableNumber", "Outbound": "OutboundAssistant",
	"Result": "ToolTestResult", "Rotated": "RotatedWebhookSecret", "SavedEndpoint": "SavedWebhookEndpoint",
	"Secret": "WebhookSecret",
	"Sender": "WhatsAppSender", "SentMessage": "SentWhatsAppMessage", "SessionAnswer": "WhatsAppSessionStatus",
	"ShownCall": "Call",
	"Shown":     "Widget", "Spoken": "ConversationMessage", "StatusOnly": "Acknowledgement",
	"StringListResponse": "WebhookSettingResponse",
	"Trial":              "TestCallRequest",
	"File":               "AssistantFile", "ChangedFields": "FieldChanges", "WholeVersion": "AssistantVersionWhole",
	"Measured":   "EndpointReport",
	"TrunkInput": "Trunk", "LimitRow": "AccountLimit",
}

// alsoRefuses are the statuses of refusals that an operation's declaration doesn't tell of.
var alsoRefuses = map[string][]int{
	"makeCall": {402, 403}, "sendSMS": {400}, "createCampaign": {403}, "createCampaignPlural": {403},
	"updateCampaignStatus": {400, 404},
	"tryCampaign":          {400, 402, 403}, "scheduleCampaign": {400}, "unscheduleCampaign": {400},
	"createTool": {403}, "createEndpoint": {403}, "updateEndpoint": {403}, "testEndpoint": {403, 429}, "purchaseNumber": {400, 402},
	"createConversation": {402, 403}, "sendMessage": {402, 502},
	"startWebCall":  {402, 403, 503},
	"generateReply": {402, 502}, "generateReplyShort": {402, 502}, "sendWhatsAppTemplate": {402, 503},
	"sendWhatsAppText": {402, 403, 503},
	"login":            {401}, "register": {403}, "logout": {400}, "createLead": {404}, "deleteCall": {409},
	"hangUpCall": {409}, "eraseCustomer": {409},
	"publishAssistantDraft": {409}, "importAssistant": {403}, "duplicateAssistant": {403}, "createTrunk": {409}, "updateTrunk": {409},
	"tryTrunk": {402, 403, 409}, "retryDocument": {409}}
