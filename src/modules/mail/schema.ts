/**
 * Tables of mail. A message is a row of `mail`; what it says is a row of `mail_texts`, which its copies and the messages of
 * a broadcast share: `text` is the `seq` of the first of them.
 *
 * `seq` is the order of arrival, and of times too: `created_at` never goes backwards. `sender` is the mailbox that it came
 * from, or `label:<text>` where that is nobody's. `mail_counts` follows what changes and goes by triggers. `boxes` are words
 * for the mailboxes that a text is in, so that the index can be asked for one mailbox. `silent`: nobody is to be told of it by
 * itself.
 */
const FIRST = `
CREATE TABLE mail (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  text INTEGER NOT NULL,
  mailbox TEXT NOT NULL,
  sender TEXT NOT NULL,
  "from" TEXT NOT NULL,
  "to" TEXT NOT NULL,
  subject TEXT NOT NULL,
  status TEXT NOT NULL,
  read INTEGER NOT NULL DEFAULT 0,
  thread_id TEXT NOT NULL,
  reply_to TEXT,
  copy_of TEXT,
  cc_json TEXT NOT NULL DEFAULT '[]',
  priority INTEGER NOT NULL DEFAULT 0,
  silent INTEGER NOT NULL DEFAULT 0,
  rig TEXT NOT NULL DEFAULT '',
  from_session_id TEXT,
  to_session_id TEXT,
  created_at INTEGER NOT NULL,
  read_at INTEGER,
  archived_at INTEGER
) STRICT;
CREATE INDEX mail_box ON mail (mailbox, status, seq);
CREATE INDEX mail_box_kept ON mail (mailbox, seq) WHERE status <> 'archived';
CREATE INDEX mail_status ON mail (status, seq);
CREATE INDEX mail_kept ON mail (seq) WHERE status <> 'archived';
CREATE INDEX mail_sender ON mail (sender, seq);
CREATE INDEX mail_thread ON mail (thread_id, seq);
CREATE INDEX mail_text ON mail (text);
CREATE INDEX mail_created ON mail (created_at);
CREATE INDEX mail_rig ON mail (rig, seq) WHERE rig <> '';
-- What retention looks for.
CREATE INDEX mail_settled ON mail (coalesce(archived_at, read_at)) WHERE status <> 'unread';
-- What is told first.
CREATE INDEX mail_unread ON mail (mailbox, priority DESC, seq) WHERE status = 'unread';

CREATE TABLE mail_texts (
  text INTEGER PRIMARY KEY,
  boxes TEXT NOT NULL,
  subject TEXT NOT NULL,
  "from" TEXT NOT NULL,
  body TEXT NOT NULL
) STRICT;
CREATE VIRTUAL TABLE mail_search USING fts5 (
  boxes, subject, "from", body,
  content = '', columnsize = 0, prefix = '1 2 3', tokenize = 'unicode61 remove_diacritics 2'
);
INSERT INTO mail_search (mail_search, rank) VALUES ('secure-delete', 1);

CREATE TABLE mail_counts (
  mailbox TEXT NOT NULL,
  rig TEXT NOT NULL,
  status TEXT NOT NULL,
  n INTEGER NOT NULL,
  PRIMARY KEY (mailbox, rig, status)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER mail_counted AFTER INSERT ON mail BEGIN
  INSERT INTO mail_counts VALUES (new.mailbox, new.rig, new.status, 1)
    ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER mail_recounted AFTER UPDATE OF status ON mail WHEN old.status <> new.status BEGIN
  UPDATE mail_counts SET n = n - 1 WHERE mailbox = old.mailbox AND rig = old.rig AND status = old.status;
  INSERT INTO mail_counts VALUES (new.mailbox, new.rig, new.status, 1)
    ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER mail_uncounted AFTER DELETE ON mail BEGIN
  UPDATE mail_counts SET n = n - 1 WHERE mailbox = old.mailbox AND rig = old.rig AND status = old.status;
  DELETE FROM mail_counts WHERE mailbox = old.mailbox AND rig = old.rig AND status = old.status AND n = 0;
END;

-- Ids of deleted messages: deleting one again is answered the same.
CREATE TABLE mail_deleted (id TEXT PRIMARY KEY, at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX mail_deleted_at ON mail_deleted (at);

-- Up to which message a session has been told of its mail, in the conversation that it had then.
CREATE TABLE mail_told (
  session_id TEXT NOT NULL,
  mailbox TEXT NOT NULL,
  conversation TEXT NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (session_id, mailbox)
) STRICT, WITHOUT ROWID;
-- Digests that are being delivered, and what they tell of.
CREATE TABLE mail_digests (
  delivery TEXT PRIMARY KEY,
  session_id TEXT NOT NULL,
  mailbox TEXT NOT NULL,
  conversation TEXT NOT NULL,
  seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX mail_digests_session ON mail_digests (session_id);
`

/** Unread mail of somebody who has sent very much, and of somebody who has sent little among very much. */
const SECOND = 'CREATE INDEX mail_sender_status ON mail (sender, status, seq)'

/**
 * New messages are counted by a statement of their own: one that a trigger follows has FTS5 write down what it has gathered so
 * far, and each message of a group commit would be a segment of the index by itself.
 */
const THIRD = 'DROP TRIGGER mail_counted'

/** The words themselves: which there are that begin in some way. It is a view of the index and stores nothing. */
const FOURTH = 'CREATE VIRTUAL TABLE mail_terms USING fts5vocab(mail_search, instance)'

export const MAIL_SCHEMA = [FIRST, SECOND, THIRD, FOURTH] as const
