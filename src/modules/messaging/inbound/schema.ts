/**
 * Which mail an entry of a chat says, or was made of it. `here`: a mail to people that went out; `there`: what people wrote,
 * and became mail.
 */
export const CHAT_MAIL_SCHEMA = `
CREATE TABLE chat_mail (
  transcript_id TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  mail_id TEXT NOT NULL,
  said TEXT NOT NULL,
  PRIMARY KEY (transcript_id, sequence)
) STRICT, WITHOUT ROWID;
CREATE INDEX chat_mail_id ON chat_mail (mail_id);
`
