/** Tables of adapters. Secrets lie there as they are: a signature needs them (decision 148). */
export const ADAPTERS_SCHEMA = `
CREATE TABLE adapters (
  provider TEXT NOT NULL,
  account_id TEXT NOT NULL,
  name TEXT NOT NULL,
  transport TEXT NOT NULL,
  callback_url TEXT,
  capabilities_json TEXT NOT NULL,
  metadata_json TEXT NOT NULL,
  lease_ms INTEGER,
  status TEXT NOT NULL,
  failures INTEGER NOT NULL DEFAULT 0,
  last_error TEXT,
  paused_until INTEGER NOT NULL DEFAULT 0,
  registered_at INTEGER NOT NULL,
  last_seen_at INTEGER NOT NULL,
  last_delivery_at INTEGER,
  PRIMARY KEY (provider, account_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE adapter_secrets (
  provider TEXT NOT NULL,
  account_id TEXT NOT NULL,
  hash TEXT NOT NULL,
  secret TEXT NOT NULL,
  made_at INTEGER NOT NULL,
  until INTEGER,
  PRIMARY KEY (provider, account_id, hash),
  FOREIGN KEY (provider, account_id) REFERENCES adapters (provider, account_id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX adapter_secrets_hash ON adapter_secrets (hash);
`
