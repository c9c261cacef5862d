/**
 * Who was told of what in conversations.
 *
 * `chat_notices`: of each member that was ever told. `since`: what came up to there came before; `announced`: told to
 * `conversation` of its agent up to there; `published`: the last that it said itself.
 * `chat_late`: what became public behind something later that was told already. `chat_called`: handle that a message in a
 * group went to. `chat_told`: what a reminder tells that is being typed; `late_json` what of `chat_late` it has seen.
 * `chat_fanout`, `chat_speakers`: how often those who read one conversation were told of each other, by what began it.
 */
export const NOTICES_SCHEMA = `
CREATE TABLE chat_notices (
  transcript_id TEXT NOT NULL,
  mailbox TEXT NOT NULL,
  since INTEGER NOT NULL,
  conversation TEXT,
  announced INTEGER NOT NULL DEFAULT 0,
  published INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (transcript_id, mailbox)
) STRICT, WITHOUT ROWID;
CREATE INDEX chat_notices_mailbox ON chat_notices (mailbox);
CREATE TABLE chat_late (
  transcript_id TEXT NOT NULL,
  mailbox TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  PRIMARY KEY (transcript_id, mailbox, sequence)
) STRICT, WITHOUT ROWID;
CREATE TABLE chat_called (
  transcript_id TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  handle TEXT NOT NULL,
  PRIMARY KEY (transcript_id, sequence)
) STRICT, WITHOUT ROWID;
CREATE TABLE chat_told (
  delivery_id TEXT PRIMARY KEY,
  transcript_id TEXT NOT NULL,
  mailbox TEXT NOT NULL,
  conversation TEXT NOT NULL,
  upto INTEGER NOT NULL,
  late_json TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE chat_fanout (
  transcript_id TEXT NOT NULL,
  root INTEGER NOT NULL,
  publishes INTEGER NOT NULL DEFAULT 0,
  deliveries INTEGER NOT NULL DEFAULT 0,
  at INTEGER NOT NULL,
  PRIMARY KEY (transcript_id, root)
) STRICT, WITHOUT ROWID;
CREATE TABLE chat_speakers (
  transcript_id TEXT NOT NULL,
  root INTEGER NOT NULL,
  mailbox TEXT NOT NULL,
  PRIMARY KEY (transcript_id, root, mailbox)
) STRICT, WITHOUT ROWID;

-- Whoever comes back begins anew.
CREATE TRIGGER chat_member_left AFTER DELETE ON transcript_members BEGIN
  DELETE FROM chat_notices WHERE transcript_id = old.transcript_id AND mailbox = old.mailbox;
  DELETE FROM chat_late WHERE transcript_id = old.transcript_id AND mailbox = old.mailbox;
END;
CREATE TRIGGER chat_entry_deleted AFTER DELETE ON transcript_entries BEGIN
  DELETE FROM chat_called WHERE transcript_id = old.transcript_id AND sequence = old.sequence;
  DELETE FROM chat_fanout WHERE transcript_id = old.transcript_id AND root = old.sequence;
  DELETE FROM chat_speakers WHERE transcript_id = old.transcript_id AND root = old.sequence;
END;
CREATE TRIGGER chat_transcript_deleted AFTER DELETE ON transcripts BEGIN
  DELETE FROM chat_notices WHERE transcript_id = old.id;
  DELETE FROM chat_late WHERE transcript_id = old.id;
  DELETE FROM chat_called WHERE transcript_id = old.id;
  DELETE FROM chat_told WHERE transcript_id = old.id;
  DELETE FROM chat_fanout WHERE transcript_id = old.id;
  DELETE FROM chat_speakers WHERE transcript_id = old.id;
END;
`
