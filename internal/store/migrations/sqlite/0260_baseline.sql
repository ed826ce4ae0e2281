-- Everything as it was when the migrations before it were squashed into this one. See docs/decisions.md, Migrations.

-- +goose Up

-- Instants are integers: microseconds since 1970 UTC, 0 for none. Money is integer micro-USD. Deleting a user's row takes everything
-- of the user's with it (erasure); what is only hidden carries deleted_at.
CREATE TABLE users (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  email TEXT NOT NULL UNIQUE,
  password_hash TEXT NOT NULL,
  timezone TEXT NOT NULL,
  plan TEXT NOT NULL,
  balance BIGINT NOT NULL DEFAULT 0 CHECK (balance >= 0),
  webhook_url TEXT NOT NULL DEFAULT '',
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  disabled_at BIGINT NOT NULL DEFAULT 0,
  signed_up_at BIGINT NOT NULL DEFAULT 0, -- When an account made itself; 0 once it has had a credit, and for those that the operator made.
  operator BOOLEAN NOT NULL DEFAULT FALSE, -- Who operates this server: their account may set what all users share.
  trying_until BIGINT NOT NULL DEFAULT 0, -- Until when a user's test call over a trunk keeps others from beginning.
  email_proven_at BIGINT NOT NULL DEFAULT 1, -- When somebody has shown that an e-mail address is theirs (0: not yet; 1: they have had it since before anybody was asked).
  country TEXT, -- The country in which an account's national telephone numbers are read. NULL is filled in from the time zone at the next start; an empty one is none.
  zone_assumed BOOLEAN NOT NULL DEFAULT FALSE -- Nobody has chosen the account's time zone: it becomes that of the browser in which its first owner signs in.
);

CREATE TABLE keys (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  hash BLOB NOT NULL,
  last_used_at BIGINT NOT NULL DEFAULT 0,
  expires_at BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL,
  member_id BIGINT NOT NULL DEFAULT 0, -- Whose a credential is (0: the account's owner's), and the role that it is limited to ('': its holder's).
  scope TEXT NOT NULL DEFAULT ''
);
CREATE INDEX keys_user ON keys (user_id, kind, id);
CREATE INDEX keys_expired ON keys (expires_at) WHERE expires_at > 0;

-- The first answers to requests that carried an Idempotency-Key.
CREATE TABLE idempotency_keys (
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  key TEXT NOT NULL,
  request BLOB NOT NULL,
  status BIGINT NOT NULL DEFAULT 0,
  answer BLOB,
  created_at BIGINT NOT NULL,
  touched BOOLEAN NOT NULL DEFAULT FALSE, -- Whether something was committed under an Idempotency-Key: such a one is never freed.
  PRIMARY KEY (user_id, key)
);
CREATE INDEX idempotency_keys_old ON idempotency_keys (created_at);

-- What this installation keeps about itself: the instance's first start, generated secrets' fingerprints.
CREATE TABLE settings (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
);

-- Models that a setting named once keep their id for ever.
CREATE TABLE models (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL,
  code TEXT NOT NULL,
  name TEXT NOT NULL,
  provider TEXT NOT NULL,
  UNIQUE (kind, code)
);

CREATE TABLE trunks (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  phone_number_id BIGINT NOT NULL UNIQUE REFERENCES numbers (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  sip_address TEXT NOT NULL,
  sip_username TEXT NOT NULL,
  sip_password BLOB, -- encrypted
  transport TEXT NOT NULL,
  srtp TEXT NOT NULL,
  register BOOLEAN NOT NULL,
  inbound_authorization_type TEXT NOT NULL,
  allowed_inbound_ips TEXT NOT NULL,
  outbound_proxy TEXT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  tls_ca TEXT NOT NULL DEFAULT '', -- Whose certificates a trunk over TLS is believed by, PEM.
  hide_caller_id BOOLEAN NOT NULL DEFAULT FALSE, -- Whether a trunk's calls hide who calls, and the headers that they send.
  sip_headers TEXT NOT NULL DEFAULT '{}',
  codecs TEXT NOT NULL DEFAULT '[]', -- The codecs that a trunk's calls use, the preferred one first.
  nickname TEXT, -- How a trunk's provider wants to be talked to.
  sip_trunk_type TEXT NOT NULL DEFAULT 'number',
  numbers TEXT NOT NULL DEFAULT '[]', -- ranges, beside its own
  country_code TEXT NOT NULL DEFAULT '', -- that of its number
  sip_calling_format TEXT NOT NULL DEFAULT '+e164',
  prefix TEXT NOT NULL DEFAULT '',
  from_user TEXT NOT NULL DEFAULT 'number',
  from_domain TEXT,
  contact_domain TEXT,
  user_phone BOOLEAN NOT NULL DEFAULT FALSE,
  identity_header TEXT NOT NULL DEFAULT 'pai',
  called_number_from TEXT NOT NULL DEFAULT '[]',
  inbound_hosts TEXT NOT NULL DEFAULT '[]',
  rtp_source TEXT, -- NULL: as the server does it
  options BOOLEAN NOT NULL DEFAULT TRUE,
  preset TEXT
);
CREATE INDEX trunks_user ON trunks (user_id, id);

CREATE TABLE numbers (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  phone_number TEXT NOT NULL,
  nickname TEXT,
  country_code TEXT NOT NULL,
  type TEXT NOT NULL,
  sms_capable BOOLEAN NOT NULL DEFAULT FALSE,
  paid_until BIGINT NOT NULL DEFAULT 0,
  released_at BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL,
  rent BIGINT NOT NULL DEFAULT 0,
  route TEXT, -- Who takes a number's calls outside its hours, and whose calls are turned away.
  trunk_id BIGINT REFERENCES trunks (id) ON DELETE CASCADE -- The trunk that has a number beside its own.
);
CREATE INDEX numbers_user ON numbers (user_id, id);
CREATE INDEX numbers_due ON numbers (paid_until) WHERE type = 'normal';
CREATE INDEX numbers_trunk ON numbers (trunk_id) WHERE trunk_id IS NOT NULL;
-- A number is ours once; a caller id may be verified by several users.
CREATE UNIQUE INDEX numbers_owned ON numbers (phone_number, type) WHERE type <> 'caller_id' AND phone_number LIKE '+%';
CREATE INDEX numbers_phone ON numbers (phone_number);

CREATE TABLE knowledgebases (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  description TEXT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  deleted_at BIGINT NOT NULL DEFAULT 0, -- What is deleted is hidden at once (deleted_at) and removed in small steps by a job: a large document must not hold the only writer up.
  revision BIGINT NOT NULL DEFAULT 0 -- Counts the changes of what its vectors are; caches go by it.
);
CREATE INDEX knowledgebases_user ON knowledgebases (user_id, id);

CREATE TABLE tools (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  description TEXT NOT NULL,
  endpoint TEXT NOT NULL,
  method TEXT NOT NULL,
  timeout BIGINT NOT NULL,
  headers BLOB NOT NULL, -- encrypted JSON: header values hold credentials
  schema TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  UNIQUE (user_id, name)
);
CREATE INDEX tools_user ON tools (user_id, id);

CREATE TABLE assistants (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  uuid TEXT NOT NULL UNIQUE,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  phone_number_id BIGINT REFERENCES numbers (id) ON DELETE SET NULL,
  voice_id BIGINT NOT NULL,
  name TEXT NOT NULL,
  variables TEXT NOT NULL,
  type TEXT NOT NULL,
  status TEXT NOT NULL,
  mode TEXT NOT NULL,
  language_id BIGINT NOT NULL,
  timezone TEXT NOT NULL,
  system_prompt TEXT NOT NULL,
  prompt_version BIGINT NOT NULL,
  initial_message TEXT NOT NULL,
  llm_model_id BIGINT REFERENCES models (id),
  multimodal_model_id BIGINT REFERENCES models (id),
  synthesizer_provider_id BIGINT,
  transcriber_provider_id BIGINT,
  knowledgebase_id BIGINT REFERENCES knowledgebases (id) ON DELETE SET NULL,
  knowledgebase_mode TEXT NOT NULL,
  tools TEXT NOT NULL,
  keywords TEXT NOT NULL,
  pronunciations TEXT NOT NULL,
  llm_temperature BIGINT NOT NULL,
  voice_stability BIGINT NOT NULL,
  voice_similarity BIGINT NOT NULL,
  speech_speed BIGINT NOT NULL,
  ambient_sound TEXT NOT NULL,
  ambient_sound_volume BIGINT NOT NULL,
  allow_interruptions BOOLEAN NOT NULL,
  min_interrupt_words BIGINT,
  interrupt_sensitivity DOUBLE PRECISION NOT NULL,
  endpoint_type TEXT NOT NULL,
  endpoint_sensitivity DOUBLE PRECISION NOT NULL,
  fillers BOOLEAN NOT NULL,
  filler_config TEXT NOT NULL,
  record BOOLEAN NOT NULL,
  enable_noise_cancellation BOOLEAN NOT NULL,
  wait_for_customer BOOLEAN NOT NULL,
  max_duration BIGINT NOT NULL,
  max_silence_duration BIGINT NOT NULL,
  reengagement_interval BIGINT NOT NULL,
  reengagement_prompt TEXT NOT NULL,
  ringing_time BIGINT NOT NULL,
  end_call_on_voicemail BOOLEAN NOT NULL,
  voice_mail_message TEXT NOT NULL,
  post_call_evaluation BOOLEAN NOT NULL,
  post_call_schema TEXT NOT NULL,
  is_webhook_active BOOLEAN NOT NULL,
  webhook_url TEXT,
  inbound_webhook_url TEXT,
  conversation_ended_webhook_url TEXT,
  send_webhook_only_on_completed BOOLEAN NOT NULL,
  include_recording_in_webhook BOOLEAN NOT NULL,
  conversation_inactivity_timeout BIGINT NOT NULL,
  widget_settings TEXT NOT NULL,
  deleted_at BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  sealed_variables BLOB, -- The variables of an assistant, encrypted. The column variables is left to nodes of a former version.
  fallback_llm_model_ids TEXT NOT NULL DEFAULT '[]', -- What takes over when an assistant's models, voice or transcriber fail, in order.
  fallback_multimodal_model_ids TEXT NOT NULL DEFAULT '[]',
  fallback_voice_ids TEXT NOT NULL DEFAULT '[]',
  fallback_transcriber_provider_ids TEXT NOT NULL DEFAULT '[]',
  require_tests BOOLEAN NOT NULL DEFAULT FALSE,
  secondary_language_ids TEXT NOT NULL DEFAULT '[]', -- Further languages that the customer may speak in a call.
  backchannels BOOLEAN NOT NULL DEFAULT FALSE, -- Assistants may say words of listening while the customer tells a long story.
  background_speech_cancellation BOOLEAN NOT NULL DEFAULT FALSE, -- Assistants may keep out voices that are much fainter than the customer's.
  prompt_current_time BOOLEAN NOT NULL DEFAULT TRUE -- The model is told the time of the conversation, unless the assistant's owner turns that off.
);
CREATE INDEX assistants_user ON assistants (user_id, id) WHERE deleted_at = 0;
CREATE INDEX assistants_type ON assistants (user_id, type, id) WHERE deleted_at = 0;
CREATE INDEX assistants_knowledgebase ON assistants (knowledgebase_id) WHERE knowledgebase_id IS NOT NULL;
-- One inbound assistant answers a number, whatever races for it.
CREATE UNIQUE INDEX assistants_number ON assistants (phone_number_id) WHERE type = 'inbound' AND deleted_at = 0;
-- Deleted assistants are removed when nothing of their history is left, and an account's are counted with them.
CREATE INDEX assistants_deleted ON assistants (id) WHERE deleted_at > 0;
CREATE INDEX assistants_owner ON assistants (user_id, id);
CREATE INDEX assistants_any_number ON assistants (phone_number_id) WHERE phone_number_id IS NOT NULL;
CREATE INDEX assistants_unsealed ON assistants (id) WHERE variables <> '{}';

CREATE TABLE assistant_tools (
  assistant_id BIGINT NOT NULL REFERENCES assistants (id) ON DELETE CASCADE,
  tool_id BIGINT NOT NULL REFERENCES tools (id) ON DELETE CASCADE,
  position BIGINT NOT NULL,
  PRIMARY KEY (assistant_id, tool_id)
);
CREATE INDEX assistant_tools_tool ON assistant_tools (tool_id);

-- The ledger is the truth about money; users.balance is its cached sum, written in the same transaction. (reason, reference) makes every
-- movement happen once, whatever is retried.
CREATE TABLE ledger (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  kind TEXT NOT NULL,
  amount BIGINT NOT NULL,
  balance_after BIGINT NOT NULL CHECK (balance_after >= 0),
  reference TEXT NOT NULL,
  description TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  UNIQUE (user_id, kind, reference)
);
CREATE INDEX ledger_user ON ledger (user_id, id);
CREATE INDEX ledger_created ON ledger (user_id, created_at, id);

-- Money set aside for what is under way; it is still in the balance, and no longer free. A reservation whose owner died lapses.
CREATE TABLE reservations (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  reference TEXT NOT NULL,
  amount BIGINT NOT NULL CHECK (amount >= 0),
  expires_at BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  public_day BIGINT NOT NULL DEFAULT 0,
  UNIQUE (user_id, reference)
);
CREATE INDEX reservations_expired ON reservations (expires_at);

CREATE TABLE conversations (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  assistant_id BIGINT NOT NULL REFERENCES assistants (id) ON DELETE CASCADE,
  type TEXT NOT NULL,
  variables TEXT NOT NULL,
  external_identifier TEXT, -- the customer's name at the channel: a phone number, the caller's own id
  customer_phone TEXT,
  message_count BIGINT NOT NULL DEFAULT 0,
  total_cost BIGINT NOT NULL DEFAULT 0,
  ai_enabled BOOLEAN NOT NULL DEFAULT TRUE,
  extracted TEXT, -- values of post_call_schema, once the conversation has ended
  ends_at BIGINT NOT NULL, -- when silence will have ended it; 0 once ended
  ended_at BIGINT NOT NULL DEFAULT 0,
  lease_owner TEXT NOT NULL DEFAULT '', -- the node that answers its messages, or ends it
  lease_until BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  end_attempts BIGINT NOT NULL DEFAULT 0, -- How often the end of a conversation was tried.
  visitor_names TEXT NOT NULL DEFAULT '*', -- Those of a conversation's variables that its visitor wrote, with spaces between. '*' says all: of what was written before this was noted, and by nodes of a former version, nobody knows better.
  vendor_uses TEXT, -- What a conversation used of each vendor, and which vendors stood in for which.
  vendor_switches TEXT,
  draft BOOLEAN NOT NULL DEFAULT FALSE,
  indexed BIGINT NOT NULL DEFAULT 0, -- how many of its messages are in the index
  waits_since BIGINT NOT NULL DEFAULT 0, -- Since when a conversation needs a person (0: it does not), and who has taken it: NULL nobody, 0 the account's owner, else a member.
  assignee BIGINT
);
CREATE INDEX conversations_user ON conversations (user_id, seq);
CREATE INDEX conversations_type ON conversations (user_id, type, seq);
CREATE INDEX conversations_assistant ON conversations (assistant_id, seq);
CREATE INDEX conversations_created ON conversations (user_id, created_at, seq);
CREATE INDEX conversations_phone ON conversations (user_id, customer_phone) WHERE customer_phone IS NOT NULL;
CREATE INDEX conversations_updated ON conversations (updated_at);
CREATE INDEX conversations_silent ON conversations (ends_at) WHERE ends_at > 0;
-- One conversation per assistant and customer in the channels that name the customer.
CREATE UNIQUE INDEX conversations_customer ON conversations (assistant_id, type, external_identifier) WHERE external_identifier IS NOT NULL;
-- The list of conversations by what a channel calls the customer.
CREATE INDEX conversations_identifier ON conversations (user_id, external_identifier, seq) WHERE external_identifier IS NOT NULL;
CREATE INDEX conversations_unindexed ON conversations (seq) WHERE indexed < message_count;
-- The inbox: what needs a person, longest waiting first; what of it nobody has taken; what somebody has taken.
CREATE INDEX conversations_waiting ON conversations (user_id, waits_since, seq) WHERE waits_since > 0;
CREATE INDEX conversations_unassigned ON conversations (user_id, waits_since, seq) WHERE waits_since > 0 AND assignee IS NULL;
CREATE INDEX conversations_assigned ON conversations (user_id, assignee, seq) WHERE assignee IS NOT NULL;

-- A customer's message is pending from its arrival until a reply stands, the model has failed, or none is wanted. Replies that were
-- made out of turn still sort behind what they answer: the order of a conversation is (turn, id).
CREATE TABLE messages (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  turn BIGINT NOT NULL DEFAULT 0, -- of a reply: the id of the message that it answers
  role TEXT NOT NULL,
  author TEXT NOT NULL, -- customer, ai or human
  content TEXT NOT NULL,
  function_calls TEXT,
  pending BOOLEAN NOT NULL DEFAULT FALSE,
  failed BOOLEAN NOT NULL DEFAULT FALSE, -- no reply came: the model failed
  cost BIGINT NOT NULL DEFAULT 0,
  input_tokens BIGINT NOT NULL DEFAULT 0,
  output_tokens BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL,
  channel TEXT NOT NULL DEFAULT '', -- The channel that a customer's message came through, and its id there: what is told twice stands once.
  external_id TEXT,
  sources TEXT, -- The passages that a reply was given.
  attempts BIGINT NOT NULL DEFAULT 0, -- How often an answer to a customer's message was begun.
  error TEXT,
  edited BOOLEAN NOT NULL DEFAULT FALSE, -- Customers edit and delete what they wrote.
  deleted BOOLEAN NOT NULL DEFAULT FALSE,
  author_name TEXT NOT NULL DEFAULT '' -- Which person of the account wrote a message, and who takes part in a call or had a telephone called: their names then.
);
CREATE INDEX messages_conversation ON messages (conversation_id, id);
CREATE INDEX messages_pending ON messages (conversation_id, id) WHERE pending;
CREATE UNIQUE INDEX messages_external ON messages (conversation_id, external_id) WHERE external_id IS NOT NULL;
-- The overview counts the messages of the last days that got no reply.
CREATE INDEX messages_failed ON messages (created_at, conversation_id) WHERE failed;

-- What signs a user's webhooks. The one without an end is the present one; those that were replaced sign along until theirs.
CREATE TABLE webhook_secrets (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  sealed BLOB NOT NULL,
  ends_at BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL
);
CREATE INDEX webhook_secrets_user ON webhook_secrets (user_id, id);

-- Events on their way to endpoints. What is pending is tried when next_attempt_at has come; who tries it moves that on first, so that
-- it comes again when they die over it.
CREATE TABLE webhook_deliveries (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  webhook_id TEXT NOT NULL UNIQUE,
  event TEXT NOT NULL,
  url TEXT NOT NULL,
  status TEXT NOT NULL,
  attempts BIGINT NOT NULL DEFAULT 0,
  last_status BIGINT,
  last_error TEXT,
  next_attempt_at BIGINT NOT NULL, -- 0 unless pending
  created_at BIGINT NOT NULL,
  payload TEXT NOT NULL, -- sent and signed byte for byte: no JSON column, which would write it anew
  answer TEXT NOT NULL DEFAULT '',
  earlier BIGINT NOT NULL DEFAULT 0, -- attempts before it was last sent again by hand
  lane BIGINT NOT NULL, -- user and endpoint: what waits behind one another
  conversation_id TEXT REFERENCES conversations (id) ON DELETE CASCADE, -- its words go when it goes
  call_id BIGINT,
  customer_phone TEXT
);
CREATE INDEX webhook_deliveries_user ON webhook_deliveries (user_id, id);
CREATE INDEX webhook_deliveries_event ON webhook_deliveries (user_id, event, id);
CREATE INDEX webhook_deliveries_status ON webhook_deliveries (user_id, status, id);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (lane, next_attempt_at, id) WHERE next_attempt_at > 0;
CREATE INDEX webhook_deliveries_old ON webhook_deliveries (created_at) WHERE next_attempt_at = 0;
CREATE INDEX webhook_deliveries_conversation ON webhook_deliveries (conversation_id) WHERE conversation_id IS NOT NULL;
CREATE INDEX webhook_deliveries_call ON webhook_deliveries (call_id) WHERE call_id IS NOT NULL;
CREATE INDEX webhook_deliveries_phone ON webhook_deliveries (user_id, customer_phone) WHERE customer_phone IS NOT NULL;

CREATE TABLE webhook_attempts (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  delivery_id BIGINT NOT NULL REFERENCES webhook_deliveries (id) ON DELETE CASCADE,
  at BIGINT NOT NULL,
  status BIGINT,
  error TEXT,
  duration_ms BIGINT NOT NULL
);
CREATE INDEX webhook_attempts_delivery ON webhook_attempts (delivery_id, id);

-- What searches found: only such numbers can be bought, at the price that was shown.
CREATE TABLE number_offers (
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  phone_number TEXT NOT NULL,
  country_code TEXT NOT NULL,
  sms_capable BOOLEAN NOT NULL,
  rent BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (user_id, phone_number)
);
CREATE INDEX number_offers_old ON number_offers (created_at);

-- Purchases under way, from before the carrier is asked until the number is a row of numbers or was given back.
CREATE TABLE number_orders (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  phone_number TEXT NOT NULL,
  country_code TEXT NOT NULL,
  sms_capable BOOLEAN NOT NULL,
  rent BIGINT NOT NULL,
  cancelled BOOLEAN NOT NULL DEFAULT FALSE,
  created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX number_orders_phone ON number_orders (phone_number);
-- An index for each statement in a write transaction that read a whole table.
CREATE INDEX number_orders_owner ON number_orders (user_id);

-- Numbers that wait to be verified as caller ids.
CREATE TABLE caller_ids (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  phone_number TEXT NOT NULL,
  code BLOB NOT NULL, -- encrypted
  tries BIGINT NOT NULL DEFAULT 0,
  expires_at BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  UNIQUE (user_id, phone_number)
);
CREATE INDEX caller_ids_expired ON caller_ids (expires_at);

-- Messages outlive the number that they were sent from.
CREATE TABLE sms (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  phone_number_id BIGINT NOT NULL,
  sender TEXT NOT NULL,
  recipient TEXT NOT NULL,
  body TEXT NOT NULL,
  segments BIGINT NOT NULL,
  segment_price BIGINT NOT NULL,
  total_cost BIGINT NOT NULL,
  status TEXT NOT NULL,
  sid TEXT,
  error TEXT,
  lease_until BIGINT NOT NULL DEFAULT 0,
  attempted_at BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX sms_user ON sms (user_id, id);
CREATE INDEX sms_status ON sms (user_id, status, id);
CREATE INDEX sms_number ON sms (user_id, phone_number_id, id);
CREATE INDEX sms_recipient ON sms (user_id, recipient, id);
CREATE INDEX sms_created ON sms (user_id, created_at, id);
CREATE INDEX sms_old ON sms (created_at);
CREATE INDEX sms_waiting ON sms (id) WHERE status = 'queued';
CREATE UNIQUE INDEX sms_sid ON sms (sid) WHERE sid IS NOT NULL;

CREATE TABLE sms_inbound (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  sid TEXT NOT NULL UNIQUE,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  number_id BIGINT NOT NULL,
  sender TEXT NOT NULL,
  recipient TEXT NOT NULL,
  body TEXT NOT NULL,
  handled BOOLEAN NOT NULL DEFAULT FALSE, -- the assistant has it, or nobody wants it
  created_at BIGINT NOT NULL
);
CREATE INDEX sms_inbound_waiting ON sms_inbound (id) WHERE NOT handled;
CREATE INDEX sms_inbound_old ON sms_inbound (created_at);
CREATE INDEX sms_inbound_sender ON sms_inbound (user_id, sender);

-- Who wrote STOP to a number.
CREATE TABLE sms_opt_outs (
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  sender TEXT NOT NULL,
  recipient TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (user_id, sender, recipient)
);

CREATE TABLE sandbox_outbox (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  reference TEXT NOT NULL UNIQUE,
  sid TEXT NOT NULL,
  sender TEXT NOT NULL,
  recipient TEXT NOT NULL,
  body TEXT NOT NULL,
  status TEXT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE INDEX sandbox_outbox_old ON sandbox_outbox (created_at);
CREATE INDEX sandbox_outbox_user ON sandbox_outbox (user_id, id);

-- The numbers of the server's WhatsApp Business account, as the platform last told them. user_id and assistant_id are ours.
CREATE TABLE whatsapp_senders (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  graph_id TEXT NOT NULL UNIQUE,
  user_id BIGINT REFERENCES users (id) ON DELETE SET NULL,
  assistant_id BIGINT REFERENCES assistants (id) ON DELETE SET NULL,
  phone_number TEXT NOT NULL,
  display_name TEXT NOT NULL,
  status TEXT NOT NULL,
  quality_rating TEXT NOT NULL,
  messaging_limit BIGINT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX whatsapp_senders_user ON whatsapp_senders (user_id, status, id);
CREATE INDEX whatsapp_senders_assistant ON whatsapp_senders (assistant_id) WHERE assistant_id IS NOT NULL;

CREATE TABLE whatsapp_templates (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  graph_id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  language TEXT NOT NULL,
  category TEXT NOT NULL,
  status TEXT NOT NULL,
  body_text TEXT NOT NULL,
  slots TEXT NOT NULL, -- the gaps that variables fill
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX whatsapp_templates_status ON whatsapp_templates (status, id);

-- What went to and came from WhatsApp. A customer's messages open the window for free text. With a conversation goes all that is known
-- of it here.
CREATE TABLE whatsapp_messages (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  sender_id BIGINT NOT NULL REFERENCES whatsapp_senders (id) ON DELETE CASCADE,
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  message_id BIGINT NOT NULL DEFAULT 0,
  wamid TEXT NOT NULL DEFAULT '',
  inbound BOOLEAN NOT NULL,
  phone TEXT NOT NULL,
  body TEXT NOT NULL DEFAULT '',
  status TEXT NOT NULL,
  error TEXT NOT NULL DEFAULT '',
  cost BIGINT NOT NULL DEFAULT 0,
  said_at BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  customer TEXT NOT NULL DEFAULT '' -- What WhatsApp calls a customer whose phone number it may keep back (business-scoped user id).
);
CREATE UNIQUE INDEX whatsapp_messages_wamid ON whatsapp_messages (wamid) WHERE wamid <> '';
CREATE INDEX whatsapp_messages_window ON whatsapp_messages (sender_id, phone, said_at) WHERE inbound;
CREATE INDEX whatsapp_messages_conversation ON whatsapp_messages (conversation_id, id);
CREATE INDEX whatsapp_messages_user ON whatsapp_messages (user_id);
CREATE INDEX whatsapp_messages_waiting ON whatsapp_messages (updated_at) WHERE status IN ('queued', 'sending');
CREATE INDEX whatsapp_messages_sender ON whatsapp_messages (sender_id, conversation_id);
-- Messages are found by what WhatsApp calls their customer.
CREATE INDEX whatsapp_messages_customer ON whatsapp_messages (sender_id, customer, id) WHERE customer <> '';

CREATE TABLE documents (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  knowledgebase_id BIGINT NOT NULL REFERENCES knowledgebases (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  description TEXT,
  type TEXT NOT NULL,
  status TEXT NOT NULL,
  url TEXT NOT NULL, -- of a website: where reading begins
  links TEXT NOT NULL, -- of a website: exactly these pages
  relative_links_limit BIGINT NOT NULL,
  blob TEXT NOT NULL, -- of a file: its name in blob storage
  size BIGINT NOT NULL, -- of a file: bytes
  error TEXT,
  hash TEXT NOT NULL DEFAULT '', -- SHA-256 of the text
  progress_done BIGINT NOT NULL DEFAULT 0,
  progress_total BIGINT NOT NULL DEFAULT 0,
  chunks_count BIGINT NOT NULL DEFAULT 0,
  run BIGINT NOT NULL DEFAULT 1, -- counts its processings
  live BIGINT NOT NULL DEFAULT 0, -- the run whose passages are found; 0 for none
  embedder TEXT NOT NULL DEFAULT '', -- the model that its vectors are of
  lease_until BIGINT NOT NULL DEFAULT 0, -- somebody processes it
  deleted_at BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX documents_knowledgebase ON documents (knowledgebase_id, deleted_at, id);
CREATE INDEX documents_processing ON documents (lease_until) WHERE status = 'processing';
CREATE INDEX documents_blob ON documents (blob) WHERE blob <> '';
CREATE INDEX documents_hash ON documents (knowledgebase_id, hash, id) WHERE hash <> '';

-- A passage counts when its run is its document's live one.
CREATE TABLE chunks (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  knowledgebase_id BIGINT NOT NULL REFERENCES knowledgebases (id) ON DELETE CASCADE,
  document_id BIGINT NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
  run BIGINT NOT NULL,
  position BIGINT NOT NULL,
  title TEXT NOT NULL, -- what the document was called when it was read
  heading TEXT NOT NULL,
  page BIGINT NOT NULL,
  url TEXT NOT NULL,
  text TEXT NOT NULL,
  UNIQUE (document_id, run, position)
);
CREATE INDEX chunks_knowledgebase ON chunks (knowledgebase_id);

CREATE TABLE vectors (
  chunk_id BIGINT PRIMARY KEY REFERENCES chunks (id) ON DELETE CASCADE,
  knowledgebase_id BIGINT NOT NULL,
  code BLOB NOT NULL, -- a bit per dimension: its sign
  vector BLOB NOT NULL -- float32, little endian, of length 1
);
CREATE INDEX vectors_knowledgebase ON vectors (knowledgebase_id, chunk_id);

-- A knowledgebase's vocabulary: each word as it is written, in lower case, and how many passages have it.
CREATE TABLE words (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  knowledgebase_id BIGINT NOT NULL REFERENCES knowledgebases (id) ON DELETE CASCADE,
  word TEXT NOT NULL,
  chunks BIGINT NOT NULL,
  UNIQUE (knowledgebase_id, word)
);

-- A call is live while ended_at is 0. The process that has it says so in seen_at; one that falls silent has its calls closed by another.
CREATE TABLE calls (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  assistant_id BIGINT NOT NULL REFERENCES assistants (id) ON DELETE CASCADE,
  campaign_id BIGINT,
  lead_id BIGINT,
  attempt BIGINT NOT NULL DEFAULT 0, -- at the lead
  type TEXT NOT NULL,
  status TEXT NOT NULL,
  assistant_phone TEXT,
  customer_phone TEXT,
  number_id BIGINT, -- the own number; it may be gone
  input_variables TEXT NOT NULL,
  variables TEXT NOT NULL, -- values of post_call_schema
  turns TEXT NOT NULL,
  function_calls TEXT NOT NULL,
  answered_by TEXT NOT NULL,
  evaluation TEXT NOT NULL,
  ended_reason TEXT NOT NULL,
  duration BIGINT NOT NULL, -- seconds
  max_duration BIGINT NOT NULL, -- seconds
  carrier_rate BIGINT NOT NULL, -- a started minute, as it was when the call began
  assistant_rate BIGINT NOT NULL, -- a minute, charged by the second
  carrier_cost BIGINT NOT NULL,
  assistant_cost BIGINT NOT NULL,
  reserved BIGINT NOT NULL,
  recording TEXT NOT NULL, -- its name in blob storage, '' for none
  recording_size BIGINT NOT NULL, -- bytes
  recording_due BOOLEAN NOT NULL, -- it is not in blob storage yet
  node TEXT NOT NULL, -- the process that has it
  seen_at BIGINT NOT NULL, -- when that process last said that it lives
  hangup_at BIGINT NOT NULL, -- somebody asked for its end
  report_due BIGINT NOT NULL, -- when it is to be read and told; 0 while it is live, and once that is done
  report_tries BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  ringing_at BIGINT NOT NULL,
  answered_at BIGINT NOT NULL,
  ended_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  ended_detail TEXT, -- What failed, in a sentence for its owner: in a call, and in the reply to a message.
  vendor_switches TEXT, -- Which vendors stood in for which in a call.
  vendor_uses TEXT, -- What a call used of each vendor.
  media TEXT, -- How the sound of a call was.
  signalling TEXT, -- Who else had a part in a call, and the headers that came or went with it.
  leg_cost BIGINT NOT NULL DEFAULT 0,
  taken_by TEXT NOT NULL DEFAULT 'assistant', -- Who has a call: its assistant, which holds a line, a telephone, the voicemail, the queue for a line; and since when, where that is not the answer.
  taken_at BIGINT NOT NULL DEFAULT 0,
  test BOOLEAN NOT NULL DEFAULT FALSE, -- Whether a call is a test: it takes no line of the plan's, and costs nothing.
  counted BIGINT NOT NULL DEFAULT 0, -- What lists of calls are filtered by, and whether a call is counted: 1 its end, 2 its report too.
  answerer TEXT NOT NULL DEFAULT '',
  slowest_ms BIGINT NOT NULL DEFAULT 0,
  sentiment TEXT NOT NULL DEFAULT '',
  outcome TEXT NOT NULL DEFAULT '',
  indexed BOOLEAN NOT NULL DEFAULT FALSE, -- What of calls and conversations is in the search in transcripts.
  watched_at BIGINT NOT NULL DEFAULT 0, -- When another node last looked at the call, by the database's clock: the figures in its row are kept fresh meanwhile.
  verdicts TEXT -- Who or what took an outgoing call, as it was judged.
);
CREATE INDEX calls_user ON calls (user_id, id);
CREATE INDEX calls_status ON calls (user_id, status, id);
CREATE INDEX calls_type ON calls (user_id, type, id);
CREATE INDEX calls_phone ON calls (user_id, customer_phone, id) WHERE customer_phone IS NOT NULL;
CREATE INDEX calls_created ON calls (user_id, created_at, id);
CREATE INDEX calls_live ON calls (user_id) WHERE ended_at = 0;
CREATE INDEX calls_node ON calls (node) WHERE ended_at = 0;
CREATE INDEX calls_report ON calls (report_due) WHERE report_due > 0;
CREATE INDEX calls_recorded ON calls (ended_at) WHERE recording <> '';
CREATE INDEX calls_ended ON calls (ended_at);
-- Nobody is rung twice for one attempt.
CREATE UNIQUE INDEX calls_attempt ON calls (lead_id, attempt) WHERE lead_id IS NOT NULL;
CREATE INDEX calls_assistant ON calls (assistant_id, user_id, id);
CREATE INDEX calls_campaign ON calls (campaign_id, user_id, id) WHERE campaign_id IS NOT NULL;
-- The filters of lists, with the days they are asked for; calls that are not counted yet; tests, which are counted nowhere.
CREATE INDEX calls_uncounted ON calls (id) WHERE counted < 2 AND ended_at > 0;
CREATE INDEX calls_tests ON calls (user_id, id) WHERE test;
CREATE INDEX calls_number ON calls (user_id, number_id, created_at, id) WHERE number_id IS NOT NULL;
CREATE INDEX calls_reason ON calls (user_id, ended_reason, created_at, id);
CREATE INDEX calls_answerer ON calls (user_id, answerer, created_at, id);
CREATE INDEX calls_slowest ON calls (user_id, slowest_ms, created_at, id);
CREATE INDEX calls_sentiment ON calls (user_id, sentiment, created_at, id);
CREATE INDEX calls_outcome ON calls (user_id, outcome, created_at, id);
CREATE INDEX calls_assistant_days ON calls (user_id, assistant_id, created_at, id);
CREATE INDEX calls_status_days ON calls (user_id, status, created_at, id);
CREATE INDEX calls_unindexed ON calls (id) WHERE NOT indexed AND ended_at > 0;
-- Calls whose reports are due are looked for by account, so that one account's backlog holds up nobody else's. Nodes of the former version
-- still look by calls_report.
CREATE INDEX calls_report_due ON calls (user_id, report_due, id) WHERE report_due > 0;

-- What a user's outgoing calls of a day cost, and what those that are live may cost at most.
CREATE TABLE call_spend (
  user_id BIGINT PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
  day BIGINT NOT NULL, -- since 1970, UTC
  amount BIGINT NOT NULL
);

CREATE TABLE campaigns (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  assistant_id BIGINT NOT NULL REFERENCES assistants (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  status TEXT NOT NULL,
  timezone TEXT NOT NULL,
  max_calls_in_parallel BIGINT NOT NULL,
  mark_complete_when_no_leads BOOLEAN NOT NULL,
  allowed_hours_start_time TEXT NOT NULL,
  allowed_hours_end_time TEXT NOT NULL,
  allowed_days TEXT NOT NULL,
  max_retries BIGINT NOT NULL,
  retry_interval BIGINT NOT NULL, -- minutes
  retry_on_voicemail BOOLEAN NOT NULL,
  retry_on_goal_incomplete BOOLEAN NOT NULL,
  goal_completion_variable TEXT,
  paused_until BIGINT NOT NULL DEFAULT 0,
  pause_reason TEXT,
  started_at BIGINT NOT NULL DEFAULT 0,
  completed_at BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  failing TEXT NOT NULL, -- leads of the calls that failed in a row
  pauses BIGINT NOT NULL DEFAULT 0, -- in a row
  rotation BIGINT NOT NULL DEFAULT 0, -- calls begun: which number is next
  answered BIGINT NOT NULL DEFAULT 0, -- calls that have ended, by outcome
  voicemail BIGINT NOT NULL DEFAULT 0,
  busy BIGINT NOT NULL DEFAULT 0,
  no_answer BIGINT NOT NULL DEFAULT 0,
  failed BIGINT NOT NULL DEFAULT 0,
  canceled BIGINT NOT NULL DEFAULT 0,
  cost BIGINT NOT NULL DEFAULT 0,
  deleted_at BIGINT NOT NULL DEFAULT 0, -- hidden at once; its calls keep its name
  emptied BOOLEAN NOT NULL DEFAULT FALSE, -- of a deleted one: its leads, which go in small steps, are gone
  starts_at BIGINT NOT NULL DEFAULT 0 -- When a campaign is to begin by itself; 0: it is not.
);
CREATE INDEX campaigns_user ON campaigns (user_id, id) WHERE deleted_at = 0;
CREATE INDEX campaigns_running ON campaigns (user_id) WHERE status = 'in-progress' AND deleted_at = 0;
CREATE INDEX campaigns_deleted ON campaigns (user_id, id) WHERE deleted_at > 0 AND NOT emptied;
CREATE INDEX campaigns_due ON campaigns (starts_at) WHERE starts_at > 0 AND deleted_at = 0;
CREATE INDEX campaigns_assistant ON campaigns (assistant_id);

CREATE TABLE campaign_numbers (
  campaign_id BIGINT NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
  number_id BIGINT NOT NULL REFERENCES numbers (id) ON DELETE CASCADE,
  position BIGINT NOT NULL,
  PRIMARY KEY (campaign_id, number_id)
);
CREATE INDEX campaign_numbers_number ON campaign_numbers (number_id);

-- A lead waits while due_at is not 0. Who claims it moves that on by a lease: it is due again when they die before there is a call.
CREATE TABLE leads (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  campaign_id BIGINT NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
  phone_number TEXT NOT NULL,
  variables TEXT NOT NULL,
  status TEXT NOT NULL,
  attempts BIGINT NOT NULL DEFAULT 0,
  next_attempt_at BIGINT NOT NULL DEFAULT 0, -- as it is shown
  last_call_id BIGINT,
  outcome TEXT, -- of the last call that has ended, with what was found out
  answered_by TEXT,
  evaluation TEXT NOT NULL,
  extracted TEXT NOT NULL,
  total_cost BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  serial BIGINT NOT NULL DEFAULT 0, -- attempts ever made
  base BIGINT NOT NULL DEFAULT 0, -- serial when it last began from the start
  fresh BOOLEAN NOT NULL DEFAULT TRUE,
  duplicate BOOLEAN NOT NULL DEFAULT FALSE,
  due_at BIGINT NOT NULL,
  owner TEXT NOT NULL DEFAULT '', -- the node that has claimed it
  watch_at BIGINT NOT NULL DEFAULT 0, -- while it is processed: when to see whether its call is still there
  contacts TEXT, -- Further numbers of leads, and which of a lead's numbers is called: 0 is its own.
  contact BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX leads_user ON leads (user_id, id);
CREATE INDEX leads_user_status ON leads (user_id, status, id);
CREATE INDEX leads_user_created ON leads (user_id, created_at, id);
CREATE INDEX leads_phone ON leads (user_id, phone_number, id);
CREATE INDEX leads_campaign_status ON leads (campaign_id, status, id);
CREATE INDEX leads_campaign_phone ON leads (campaign_id, phone_number, id);
-- A number is in a campaign once, whatever races for it, unless its user wants it twice.
CREATE UNIQUE INDEX leads_once ON leads (campaign_id, phone_number) WHERE NOT duplicate;
-- What is tried again goes before what was not tried yet: a list that takes days must not hold up the retries.
CREATE INDEX leads_again ON leads (campaign_id, due_at, id) WHERE due_at > 0 AND NOT fresh;
CREATE INDEX leads_fresh ON leads (campaign_id, due_at, id) WHERE due_at > 0 AND fresh;
CREATE INDEX leads_watched ON leads (watch_at) WHERE watch_at > 0;
CREATE INDEX leads_campaign ON leads (campaign_id, user_id, id);
CREATE INDEX leads_owner ON leads (owner) WHERE owner <> '';

CREATE TABLE blacklist (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  phone_number TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  UNIQUE (user_id, phone_number)
);
CREATE INDEX blacklist_user ON blacklist (user_id, id);

-- The tools that ran for a message that has no reply yet: the next attempt is told their results, and does not run them again.
CREATE TABLE message_calls (
  message_id BIGINT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
  n BIGINT NOT NULL, -- in the order of the turn
  name TEXT NOT NULL,
  arguments TEXT NOT NULL,
  result TEXT, -- NULL from its beginning until its end is known
  PRIMARY KEY (message_id, n)
);

-- What strangers may spend of an account: the widget's messages and calls from browsers, by UTC day. A reservation that counts knows its
-- day, so that what is given back is taken off there.
CREATE TABLE public_spend (
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  day BIGINT NOT NULL,
  amount BIGINT NOT NULL,
  warned BOOLEAN NOT NULL DEFAULT FALSE,
  PRIMARY KEY (user_id, day)
);
CREATE INDEX public_spend_old ON public_spend (day);

-- What an account has begun in a day, of what is counted by the day.
CREATE TABLE day_counts (
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  day BIGINT NOT NULL,
  n BIGINT NOT NULL,
  PRIMARY KEY (user_id, name)
);

-- What was said of a call in SIP.
CREATE TABLE call_sip (
  call_id BIGINT PRIMARY KEY REFERENCES calls (id) ON DELETE CASCADE,
  messages TEXT NOT NULL
);

-- Keys of vendors that were entered in the product: the server's (user_id 0), and users' own. The row of a key that was removed stays,
-- without it: that is how other nodes learn of it.
CREATE TABLE vendor_keys (
  user_id BIGINT NOT NULL,
  vendor TEXT NOT NULL,
  sealed BLOB,
  hint TEXT NOT NULL,
  base_url TEXT NOT NULL,
  state TEXT NOT NULL,
  reason TEXT NOT NULL,
  checked_at BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  revision BIGINT NOT NULL,
  models TEXT NOT NULL DEFAULT '', -- The models that a server of the operator's own listed, one a line.
  PRIMARY KEY (user_id, vendor)
);
CREATE INDEX vendor_keys_revision ON vendor_keys (revision);

-- The latest revision: each change takes the next one under the row's lock, so that they are seen in their order.
CREATE TABLE vendor_clock (
  id BIGINT PRIMARY KEY,
  revision BIGINT NOT NULL
);

-- Voices in a user's account at a vendor, such as cloned ones. Assistants name them by their number: it is never used again.
CREATE TABLE account_voices (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  vendor TEXT NOT NULL,
  code TEXT NOT NULL,
  name TEXT NOT NULL,
  languages TEXT NOT NULL,
  gender TEXT NOT NULL,
  accent TEXT NOT NULL,
  age TEXT NOT NULL,
  gone BOOLEAN NOT NULL,
  UNIQUE (user_id, vendor, code)
);

-- Who was called into a live call besides its customer: the target of a transfer. A leg is open while ended_at is 0; whoever ends the call ends it too.
CREATE TABLE call_legs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  call_id BIGINT NOT NULL REFERENCES calls (id) ON DELETE CASCADE,
  user_id BIGINT NOT NULL,
  kind TEXT NOT NULL,
  status TEXT NOT NULL,
  phone_number TEXT NOT NULL, -- who was called
  caller_id TEXT NOT NULL, -- the number that they saw
  ended_reason TEXT NOT NULL,
  summary TEXT NOT NULL, -- what they were told of the conversation
  turns TEXT NOT NULL, -- what was said before they were joined
  max_duration BIGINT NOT NULL, -- seconds
  rate BIGINT NOT NULL, -- a started minute, as it was when the leg began
  cost BIGINT NOT NULL,
  reserved BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  answered_at BIGINT NOT NULL,
  joined_at BIGINT NOT NULL,
  ended_at BIGINT NOT NULL,
  mode TEXT NOT NULL DEFAULT '', -- What a supervisor or guest hears and does: listen, whisper, talk, take_over; '' for the target of a transfer.
  recording TEXT NOT NULL DEFAULT '', -- The name of a leg's recording in blob storage, '' for none: there is one only where its call has one.
  person TEXT NOT NULL DEFAULT ''
);
CREATE INDEX call_legs_call ON call_legs (call_id, id);

-- Tests of assistants: conversations that are written down, the runs in which they were performed, and what became of each performance.
CREATE TABLE tests (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  assistant_id BIGINT NOT NULL REFERENCES assistants (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  channel TEXT NOT NULL,
  script TEXT NOT NULL, -- YAML
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  customer TEXT NOT NULL DEFAULT '' -- Whose words a test or a replay is made of, by phone number or the channel's name for them; empty: nobody's. They go when the customer is erased.
);
CREATE INDEX tests_assistant ON tests (assistant_id, id);
CREATE INDEX tests_user ON tests (user_id);
CREATE INDEX tests_customer ON tests (user_id, customer) WHERE customer <> '';

CREATE TABLE test_runs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  assistant_id BIGINT NOT NULL REFERENCES assistants (id) ON DELETE CASCADE,
  draft TEXT, -- what of the assistant was changed for it
  call_id BIGINT, -- what it replays
  conversation_id TEXT,
  stopped BOOLEAN NOT NULL,
  created_at BIGINT NOT NULL,
  finished_at BIGINT NOT NULL,
  draft_at BIGINT NOT NULL DEFAULT 0, -- when the draft was saved
  sealed_draft BLOB, -- its changes, as assistant_drafts has them
  customer TEXT NOT NULL DEFAULT ''
);
CREATE INDEX test_runs_assistant ON test_runs (assistant_id, id);
CREATE INDEX test_runs_user ON test_runs (user_id);
CREATE INDEX test_runs_customer ON test_runs (user_id, customer) WHERE customer <> '';

CREATE TABLE test_results (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id BIGINT NOT NULL REFERENCES test_runs (id) ON DELETE CASCADE,
  user_id BIGINT NOT NULL,
  assistant_id BIGINT NOT NULL,
  test_id BIGINT, -- the test may be gone
  name TEXT NOT NULL,
  channel TEXT NOT NULL,
  state TEXT NOT NULL,
  error TEXT NOT NULL,
  script TEXT NOT NULL, -- as it was when the run began
  place BIGINT NOT NULL, -- among the performances of its script
  verdicts TEXT,
  figures TEXT,
  turns TEXT,
  function_calls TEXT,
  picture TEXT NOT NULL,
  played_call_id BIGINT,
  took_ms BIGINT NOT NULL,
  node TEXT NOT NULL,
  tries BIGINT NOT NULL,
  due_at BIGINT NOT NULL, -- when a process may take it; until then the one that has it does
  finished_at BIGINT NOT NULL,
  script_id BIGINT
);
CREATE INDEX test_results_run ON test_results (run_id, id);
CREATE INDEX test_results_test ON test_results (test_id, run_id);
CREATE INDEX test_results_open ON test_results (due_at, state, user_id, channel, id) WHERE state IN ('waiting', 'running');
CREATE INDEX test_results_script ON test_results (run_id) WHERE script <> '';

-- Versions of whole assistants, in place of versions of the prompt alone (prompt_versions, which nodes of the former
-- version still write). What was kept of prompts is taken over.
CREATE TABLE assistant_versions (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  assistant_id BIGINT NOT NULL REFERENCES assistants (id) ON DELETE CASCADE,
  version BIGINT NOT NULL, -- counted per assistant
  prompt_version BIGINT NOT NULL,
  wording BOOLEAN NOT NULL, -- the first with its prompt_version
  whole BOOLEAN NOT NULL, -- has all fields
  author TEXT NOT NULL,
  note TEXT NOT NULL,
  changed TEXT NOT NULL, -- names of fields
  fields TEXT NOT NULL, -- JSON, without the variables
  sealed_variables BLOB,
  created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX assistant_versions_number ON assistant_versions (assistant_id, version);
CREATE INDEX assistant_versions_wording ON assistant_versions (assistant_id, prompt_version) WHERE wording;

-- What of an assistant is changed and not live yet, and the conversations that are held with it.
CREATE TABLE assistant_drafts (
  assistant_id BIGINT PRIMARY KEY REFERENCES assistants (id) ON DELETE CASCADE,
  user_id BIGINT NOT NULL,
  author TEXT NOT NULL,
  base BIGINT NOT NULL, -- when the live assistant was last changed before the draft was begun
  sealed_changes BLOB NOT NULL, -- JSON of the changed fields, encrypted
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);

-- What analytics are made of: counts of a user's six hours, packed (internal/store/activity.go).
CREATE TABLE activity (
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  span BIGINT NOT NULL, -- six hours, since 1970
  pack BLOB NOT NULL, -- the six hours as a whole
  quarters BLOB NOT NULL, -- each quarter of an hour: for days that begin within the six hours
  PRIMARY KEY (user_id, span)
);

-- Up to which id the rows are not counted yet that were there before.
CREATE TABLE activity_left (
  name TEXT PRIMARY KEY,
  below BIGINT NOT NULL
);

-- People who work in another's account, and those who were asked to.
CREATE TABLE members (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  email TEXT NOT NULL UNIQUE,
  password_hash TEXT NOT NULL,
  role TEXT NOT NULL,
  language TEXT NOT NULL,
  timezone TEXT NOT NULL,
  disabled_at BIGINT NOT NULL, -- 0: may sign in
  last_seen_at BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  email_proven_at BIGINT NOT NULL DEFAULT 1
);
CREATE INDEX members_user ON members (user_id, id);

CREATE TABLE invitations (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  email TEXT NOT NULL,
  name TEXT NOT NULL,
  role TEXT NOT NULL,
  hash BLOB NOT NULL,
  expires_at BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  mail_hash BLOB -- The link of an invitation that is sent by e-mail proves the address; the one that is shown to whoever invites does not.
);
CREATE UNIQUE INDEX invitations_email ON invitations (user_id, email);
CREATE INDEX invitations_expired ON invitations (expires_at);

-- Second factors of sign-ins. A person is an account's owner (member_id 0) or one of its members.
CREATE TABLE two_factors (
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  member_id BIGINT NOT NULL,
  sealed_secret BLOB NOT NULL,
  confirmed_at BIGINT NOT NULL, -- 0: set up, but no code was entered yet, so that it does not count
  last_step BIGINT NOT NULL, -- of the last code that was taken: it and those before are refused
  created_at BIGINT NOT NULL,
  PRIMARY KEY (user_id, member_id)
);

CREATE TABLE recovery_codes (
  user_id BIGINT NOT NULL,
  member_id BIGINT NOT NULL,
  hash BLOB NOT NULL, -- SHA-256
  PRIMARY KEY (user_id, member_id, hash),
  FOREIGN KEY (user_id, member_id) REFERENCES two_factors (user_id, member_id) ON DELETE CASCADE
);

-- Alerts: rules about the figures of an account, and how each stands.
CREATE TABLE alerts (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  kind TEXT NOT NULL,
  threshold DOUBLE PRECISION NOT NULL,
  assistant_id BIGINT REFERENCES assistants (id) ON DELETE CASCADE,
  channel TEXT,
  window_minutes BIGINT NOT NULL,
  min_calls BIGINT NOT NULL,
  hours_start TEXT, -- HH:MM
  hours_end TEXT,
  days TEXT NOT NULL,
  email BOOLEAN NOT NULL,
  webhook BOOLEAN NOT NULL,
  active BOOLEAN NOT NULL,
  raised_at BIGINT NOT NULL, -- 0: it is not raised
  last_raised_at BIGINT NOT NULL,
  resolved_at BIGINT NOT NULL,
  value DOUBLE PRECISION,
  calls BIGINT NOT NULL,
  checked_at BIGINT NOT NULL,
  due_at BIGINT NOT NULL, -- when it is looked at next; 0: it is not active
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX alerts_user ON alerts (user_id, id);
CREATE INDEX alerts_assistant ON alerts (assistant_id) WHERE assistant_id IS NOT NULL;
CREATE INDEX alerts_due ON alerts (due_at) WHERE due_at > 0;

-- Filters of lists that an account has saved under a name.
CREATE TABLE saved_filters (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  page TEXT NOT NULL,
  name TEXT NOT NULL,
  query TEXT NOT NULL, -- as in the page's address
  created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX saved_filters_name ON saved_filters (user_id, page, name);

-- What a node asks of the node that has a live call: to call somebody into it, to have them listen or take over. The
-- asking node removes the row when it has read the answer.
CREATE TABLE call_requests (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  call_id BIGINT NOT NULL REFERENCES calls (id) ON DELETE CASCADE,
  user_id BIGINT NOT NULL,
  node TEXT NOT NULL, -- that has the call
  kind TEXT NOT NULL,
  body TEXT NOT NULL, -- JSON
  answer TEXT NOT NULL, -- JSON; '' while there is none
  created_at BIGINT NOT NULL, -- by the database's clock
  taken_at BIGINT NOT NULL -- when the node began with it, likewise; 0 before
);
CREATE INDEX call_requests_node ON call_requests (node, taken_at);
CREATE INDEX call_requests_created ON call_requests (created_at);
CREATE INDEX call_requests_call ON call_requests (call_id);

-- What people write down about a conversation, which goes with it; and texts that they send often.
CREATE TABLE conversation_notes (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  author TEXT NOT NULL,
  content TEXT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE INDEX conversation_notes_of ON conversation_notes (conversation_id, id);

CREATE TABLE canned_answers (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  content TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX canned_answers_name ON canned_answers (user_id, name);

-- Messages that people have spoken for the voicemails that their assistants reach. A row outlives its assistant until its blob is removed.
CREATE TABLE voicemail_recordings (
  assistant_id BIGINT PRIMARY KEY,
  user_id BIGINT NOT NULL,
  blob TEXT NOT NULL, -- its name in blob storage: 16-bit WAV, mono, 16 kHz
  duration_ms BIGINT NOT NULL,
  created_at BIGINT NOT NULL
);

-- Who signs in by an OpenID Connect issuer: an account's owner (member_id 0) or one of its members.
CREATE TABLE identities (
  issuer TEXT NOT NULL,
  subject TEXT NOT NULL,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  member_id BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (issuer, subject)
);
CREATE UNIQUE INDEX identities_person ON identities (user_id, member_id, issuer);

-- Who changed what in an account.
CREATE TABLE audit (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  created_at BIGINT NOT NULL,
  who TEXT NOT NULL, -- owner, member:ID, key:ID, invitation:ID, operator
  who_name TEXT NOT NULL,
  address TEXT NOT NULL,
  action TEXT NOT NULL,
  kind TEXT NOT NULL,
  thing_id TEXT NOT NULL,
  name TEXT NOT NULL,
  changes TEXT NOT NULL
);
CREATE INDEX audit_user ON audit (user_id, id);
CREATE INDEX audit_who ON audit (user_id, who, id);
CREATE INDEX audit_kind ON audit (user_id, kind, id);
CREATE INDEX audit_day ON audit (user_id, created_at);
CREATE INDEX audit_old ON audit (created_at);

-- The script of a test, as it was when a run began: once in a run, not with each performance. What former versions stored with
-- performances is moved by Tx.ShareScripts.
CREATE TABLE test_scripts (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id BIGINT NOT NULL REFERENCES test_runs (id) ON DELETE CASCADE,
  test_id BIGINT, -- the test may be gone
  script TEXT NOT NULL
);
CREATE INDEX test_scripts_run ON test_scripts (run_id);
CREATE INDEX test_scripts_test ON test_scripts (test_id) WHERE test_id IS NOT NULL;

-- How many bytes the assistants, tests and tools of an account take, as Tx.weigh counts them. An account without a row is
-- counted when it next stores something.
CREATE TABLE stored_bytes (
  user_id BIGINT PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
  bytes BIGINT NOT NULL,
  counted_at BIGINT NOT NULL -- when its rows were last counted
);
CREATE INDEX stored_bytes_counted ON stored_bytes (counted_at);

-- How many e-mails an account caused and an address got in a day.
CREATE TABLE mail_counts (
  name TEXT PRIMARY KEY, -- user:ID, or to:HASH of the address
  day BIGINT NOT NULL,
  n BIGINT NOT NULL
);
CREATE INDEX mail_counts_day ON mail_counts (day);

-- Lists of leads on their way into campaigns, and what was left out of them.
CREATE TABLE imports (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  campaign_id BIGINT NOT NULL,
  blob TEXT NOT NULL,
  size BIGINT NOT NULL,
  options TEXT NOT NULL,
  state TEXT NOT NULL,
  rows BIGINT NOT NULL DEFAULT 0,
  imported BIGINT NOT NULL DEFAULT 0,
  skipped BIGINT NOT NULL DEFAULT 0,
  read_bytes BIGINT NOT NULL DEFAULT 0,
  errors TEXT NOT NULL,
  failure TEXT NOT NULL DEFAULT '',
  owner TEXT NOT NULL DEFAULT '',
  lease_until BIGINT NOT NULL DEFAULT 0,
  tries BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL,
  ended_at BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX imports_campaign ON imports (campaign_id, id);
CREATE INDEX imports_open ON imports (user_id) WHERE ended_at = 0;
CREATE INDEX imports_lease ON imports (lease_until) WHERE ended_at = 0;
CREATE INDEX imports_ended ON imports (ended_at) WHERE ended_at > 0;

CREATE TABLE import_rejects (
  import_id BIGINT NOT NULL REFERENCES imports (id) ON DELETE CASCADE,
  seq BIGINT NOT NULL, -- of the batch: its last row
  rows BIGINT NOT NULL,
  text TEXT NOT NULL, -- CSV lines
  PRIMARY KEY (import_id, seq)
);

-- Folders and labels by which an account orders its assistants.
CREATE TABLE assistant_groups (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  kind TEXT NOT NULL, -- folder or label
  name TEXT NOT NULL,
  color TEXT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX assistant_groups_name ON assistant_groups (user_id, kind, name);

-- Of the folders an assistant is in one at most.
CREATE TABLE assistant_group_members (
  assistant_id BIGINT NOT NULL REFERENCES assistants (id) ON DELETE CASCADE,
  group_id BIGINT NOT NULL REFERENCES assistant_groups (id) ON DELETE CASCADE,
  PRIMARY KEY (assistant_id, group_id)
);
CREATE INDEX assistant_group_members_group ON assistant_group_members (group_id);

-- This engine only.

CREATE VIRTUAL TABLE chunk_tokens USING fts5(tokens, content='', contentless_delete=1, detail=none, tokenize="ascii tokenchars '_+-'");

CREATE VIRTUAL TABLE word_tokens USING fts5(tokens, content='', contentless_delete=1, detail=none, tokenize="ascii tokenchars '_+-'");

-- The search in transcripts: the tokens of a call's and a conversation's words, and what is not there yet. The tokens are kept out of the
-- line, so that the rows that a common word finds are on few pages.
CREATE VIRTUAL TABLE call_tokens USING fts5(tokens, content='', contentless_delete=1, detail=none, tokenize="ascii tokenchars '_'");

CREATE VIRTUAL TABLE conversation_tokens USING fts5(tokens, content='', contentless_delete=1, detail=none, tokenize="ascii tokenchars '_'");

-- +goose StatementBegin
CREATE TRIGGER chunks_gone AFTER DELETE ON chunks BEGIN DELETE FROM chunk_tokens WHERE rowid = old.id; END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER words_gone AFTER DELETE ON words BEGIN DELETE FROM word_tokens WHERE rowid = old.id; END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER calls_gone AFTER DELETE ON calls BEGIN DELETE FROM call_tokens WHERE rowid = old.id; END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER conversations_gone AFTER DELETE ON conversations BEGIN DELETE FROM conversation_tokens WHERE rowid = old.seq; END;
-- +goose StatementEnd

INSERT INTO vendor_clock (id, revision) VALUES (1, 0);
INSERT INTO activity_left VALUES ('messages', 0), ('conversations', 0), ('ledger', 0);
