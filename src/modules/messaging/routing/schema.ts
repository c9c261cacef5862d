/**
 * Who takes part in conversations, in the city's store. Times are milliseconds.
 *
 * `mailbox` is who it is for, under the key that mail has for it. `session_id` is there where it is for that session alone:
 * it ends with the session. One binding is active per conversation, and one handle of a group means one participant: unique
 * indexes say so. `conversation_json` outlives the transcript.
 * `chat_generations` outlives bindings: their numbers are never used again.
 */
export const ROUTING_SCHEMA = `
CREATE TABLE chat_bindings (
  id TEXT PRIMARY KEY,
  transcript_id TEXT NOT NULL,
  conversation_json TEXT NOT NULL,
  generation INTEGER NOT NULL,
  mailbox TEXT NOT NULL,
  session_id TEXT,
  session_name TEXT,
  metadata_json TEXT NOT NULL,
  bound_at INTEGER NOT NULL,
  expires_at INTEGER,
  ended_at INTEGER,
  ended_reason TEXT
) STRICT;
CREATE UNIQUE INDEX chat_bindings_active ON chat_bindings (transcript_id) WHERE ended_at IS NULL;
CREATE INDEX chat_bindings_transcript ON chat_bindings (transcript_id);
CREATE INDEX chat_bindings_session ON chat_bindings (session_id) WHERE ended_at IS NULL AND session_id IS NOT NULL;
CREATE INDEX chat_bindings_mailbox ON chat_bindings (mailbox) WHERE ended_at IS NULL;
CREATE INDEX chat_bindings_ended ON chat_bindings (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX chat_bindings_expiry ON chat_bindings (expires_at) WHERE ended_at IS NULL AND expires_at IS NOT NULL;
CREATE INDEX chat_bindings_age ON chat_bindings (bound_at, id);
CREATE TABLE chat_generations (
  transcript_id TEXT PRIMARY KEY,
  generation INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE chat_groups (
  id TEXT PRIMARY KEY,
  transcript_id TEXT NOT NULL UNIQUE,
  conversation_json TEXT NOT NULL,
  mode TEXT NOT NULL,
  default_handle TEXT,
  last_addressed_handle TEXT,
  fanout_json TEXT NOT NULL,
  metadata_json TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX chat_groups_age ON chat_groups (created_at, id);

CREATE TABLE chat_participants (
  id TEXT PRIMARY KEY,
  group_id TEXT NOT NULL,
  transcript_id TEXT NOT NULL,
  handle TEXT NOT NULL,
  mailbox TEXT NOT NULL,
  session_id TEXT,
  session_name TEXT,
  public INTEGER NOT NULL,
  metadata_json TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  removed_at INTEGER
) STRICT;
CREATE UNIQUE INDEX chat_participants_handle ON chat_participants (group_id, handle) WHERE removed_at IS NULL;
CREATE INDEX chat_participants_session ON chat_participants (session_id) WHERE removed_at IS NULL AND session_id IS NOT NULL;
CREATE INDEX chat_participants_removed ON chat_participants (removed_at) WHERE removed_at IS NOT NULL;
CREATE INDEX chat_participants_age ON chat_participants (created_at, id);
`
