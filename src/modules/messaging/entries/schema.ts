/**
 * Transcripts in the city's store. `parent_conversation_id` is empty where there is none. Times are milliseconds.
 *
 * `transcript_entries`: `sequence` has no gaps within a transcript and is never used again, also after the transcript was
 * deleted: `transcript_tombstones` says where a new one of the same conversation goes on. `dedupe` is by which name an inbound
 * message is known again, and `result_json` what was answered then. `root`: sequence of the inbound entry that led to it; 0: none.
 * `transcript_search` finds their texts by transcript: `tag` is its id without `cv-`, one token. Rows of one transcript have
 * ascending ids, so its matches come in the order of their sequence. `words` is what it has of a text that is indexed in
 * other words than its own.
 * `transcript_members`: who reads it, and up to where; `owners` are letters: m manual, b binding, g group.
 * `transcript_attachments`: files by their hash; `attachment_uses` the entries that have them.
 */
export const ENTRIES_SCHEMA = `
CREATE TABLE transcripts (
  id TEXT PRIMARY KEY,
  scope_id TEXT NOT NULL,
  provider TEXT NOT NULL,
  account_id TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  parent_conversation_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  next_sequence INTEGER NOT NULL,
  earliest_sequence INTEGER NOT NULL,
  last_entry_at INTEGER,
  created_at INTEGER NOT NULL,
  touched_at INTEGER AS (coalesce(last_entry_at, created_at)) VIRTUAL
) STRICT;
CREATE INDEX transcripts_newest ON transcripts (touched_at DESC, id DESC);
CREATE INDEX transcripts_conversation ON transcripts (provider, account_id, conversation_id);

CREATE TABLE transcript_tombstones (
  id TEXT PRIMARY KEY,
  next_sequence INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE transcript_entries (
  id INTEGER PRIMARY KEY,
  transcript_id TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  kind TEXT NOT NULL,
  provenance TEXT NOT NULL,
  provider_message_id TEXT,
  actor_id TEXT NOT NULL,
  actor_name TEXT NOT NULL,
  actor_is_bot INTEGER NOT NULL,
  text TEXT NOT NULL,
  explicit_target TEXT,
  reply_to_message_id TEXT,
  attachments_json TEXT NOT NULL,
  metadata_json TEXT NOT NULL,
  source_session_id TEXT,
  source_mailbox TEXT,
  delivery_id TEXT,
  delivery_status TEXT,
  root INTEGER NOT NULL,
  dedupe TEXT,
  result_json TEXT,
  received_at INTEGER,
  created_at INTEGER NOT NULL,
  tag TEXT AS (substr(transcript_id, 4)) VIRTUAL
) STRICT;
CREATE UNIQUE INDEX transcript_entries_sequence ON transcript_entries (transcript_id, sequence);
CREATE UNIQUE INDEX transcript_entries_dedupe ON transcript_entries (transcript_id, dedupe) WHERE dedupe IS NOT NULL;
CREATE INDEX transcript_entries_inbound ON transcript_entries (transcript_id, sequence)
  WHERE kind = 'inbound' AND provenance = 'live';
CREATE INDEX transcript_entries_age ON transcript_entries (created_at);

CREATE VIRTUAL TABLE transcript_search USING fts5 (
  tag, text, content = 'transcript_entries', content_rowid = 'id', columnsize = 0, tokenize = 'unicode61 remove_diacritics 2'
);
INSERT INTO transcript_search (transcript_search, rank) VALUES ('secure-delete', 1);
CREATE TRIGGER transcript_entry_added AFTER INSERT ON transcript_entries BEGIN
  INSERT INTO transcript_search (rowid, tag, text) VALUES (new.id, new.tag, new.text);
END;
CREATE TRIGGER transcript_entry_deleted AFTER DELETE ON transcript_entries BEGIN
  INSERT INTO transcript_search (transcript_search, rowid, tag, text) VALUES ('delete', old.id, old.tag, old.text);
  DELETE FROM attachment_uses WHERE transcript_id = old.transcript_id AND sequence = old.sequence;
END;

CREATE TABLE transcript_members (
  transcript_id TEXT NOT NULL,
  mailbox TEXT NOT NULL,
  owners TEXT NOT NULL,
  manual_policy TEXT,
  joined_sequence INTEGER NOT NULL,
  last_read_sequence INTEGER NOT NULL,
  metadata_json TEXT NOT NULL,
  joined_at INTEGER NOT NULL,
  PRIMARY KEY (transcript_id, mailbox)
) STRICT, WITHOUT ROWID;
CREATE INDEX transcript_members_mailbox ON transcript_members (mailbox);

CREATE TABLE transcript_attachments (
  id TEXT PRIMARY KEY,
  sha256 TEXT NOT NULL,
  size INTEGER NOT NULL,
  filename TEXT NOT NULL,
  mime_type TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX transcript_attachments_file ON transcript_attachments (sha256);
CREATE INDEX transcript_attachments_age ON transcript_attachments (created_at);
CREATE TABLE attachment_uses (
  transcript_id TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  attachment_id TEXT NOT NULL,
  PRIMARY KEY (transcript_id, sequence, attachment_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX attachment_uses_of ON attachment_uses (attachment_id);
`

/**
 * Letters of scripts without blanks, as GLOB takes them: each is a word in what is indexed. What was said before is taken apart
 * here too, but for the longest texts, each of which would hold up the start of its city for seconds.
 */
const UNSPACED =
  '[\u2e80-\u2fdf\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9d\u{20000}-\u{323af}]'

/**
 * Beginnings of words, as mail has them; words of scripts without blanks; and which words there are. New entries are indexed
 * by a statement of their own: by a trigger each of a group commit would be a segment of the index by itself.
 */
export const SEARCH_SCHEMA = `
ALTER TABLE transcript_entries ADD COLUMN words TEXT;
UPDATE transcript_entries SET words = (
  WITH RECURSIVE letters (at, letter, rest) AS (
    SELECT 1, substr(text, 1, 1), substr(text, 2)
    UNION ALL SELECT at + 1, substr(rest, 1, 1), substr(rest, 2) FROM letters WHERE rest <> ''
  )
  SELECT group_concat(iif(letter GLOB '${UNSPACED}', ' ' || letter || ' ', letter), '' ORDER BY at) FROM letters
) WHERE length(text) <= 4000 AND text GLOB '*${UNSPACED}*';
DROP TRIGGER transcript_entry_added;
DROP TRIGGER transcript_entry_deleted;
DROP TABLE transcript_search;
CREATE VIRTUAL TABLE transcript_search USING fts5 (
  tag, text, content = '', columnsize = 0, prefix = '1 2 3', tokenize = 'unicode61 remove_diacritics 2'
);
INSERT INTO transcript_search (transcript_search, rank) VALUES ('secure-delete', 1);
CREATE VIRTUAL TABLE transcript_terms USING fts5vocab(transcript_search, instance);
INSERT INTO transcript_search (rowid, tag, text) SELECT id, tag, coalesce(words, text) FROM transcript_entries ORDER BY id;
CREATE TRIGGER transcript_entry_deleted AFTER DELETE ON transcript_entries BEGIN
  INSERT INTO transcript_search (transcript_search, rowid, tag, text)
    VALUES ('delete', old.id, old.tag, coalesce(old.words, old.text));
  DELETE FROM attachment_uses WHERE transcript_id = old.transcript_id AND sequence = old.sequence;
END;
`

/** When a transcript was deleted: where its conversation goes on is forgotten a year later. */
export const TOMBSTONES_SCHEMA = `
ALTER TABLE transcript_tombstones ADD COLUMN deleted_at INTEGER NOT NULL DEFAULT 0;
UPDATE transcript_tombstones SET deleted_at = unixepoch() * 1000;
CREATE INDEX transcript_tombstones_age ON transcript_tombstones (deleted_at);
`
