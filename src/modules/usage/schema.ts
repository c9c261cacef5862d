/**
 * Usage in the city's store. `usage_turns` has every turn of the last 90 days, each once by the name that its source gave
 * it; `usage_totals` the sums of all turns ever, kept in the write that records one: `hour` is empty for the sum of all
 * hours, `kind` is what `key` names (`city` has no key). Money is whole nano-dollars. Times are milliseconds.
 *
 * `usage_logs`: up to where the logs of a session were read, committed with the turns that were found there.
 * `budget_crossings`: what was told of a budget, by its limit: another limit is another budget.
 * `budget_holds`: sessions that a crossing suspended; one that is in it and runs was woken by somebody since.
 */
export const USAGE_SCHEMA = `
CREATE TABLE usage_turns (
  id INTEGER PRIMARY KEY,
  session_id TEXT NOT NULL,
  key TEXT NOT NULL,
  at INTEGER NOT NULL,
  day TEXT NOT NULL,
  agent TEXT NOT NULL,
  bead TEXT,
  convoy TEXT,
  provider TEXT NOT NULL,
  model TEXT NOT NULL,
  input INTEGER NOT NULL,
  output INTEGER NOT NULL,
  cache_read INTEGER NOT NULL,
  cache_write INTEGER NOT NULL,
  cost_nano INTEGER,
  cost_source TEXT,
  source TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX usage_turns_once ON usage_turns (session_id, key);
CREATE INDEX usage_turns_newest ON usage_turns (session_id, at DESC, id DESC);
CREATE INDEX usage_turns_at ON usage_turns (at);

CREATE TABLE usage_totals (
  kind TEXT NOT NULL,
  hour TEXT NOT NULL,
  key TEXT NOT NULL,
  turns INTEGER NOT NULL,
  input INTEGER NOT NULL,
  output INTEGER NOT NULL,
  cache_read INTEGER NOT NULL,
  cache_write INTEGER NOT NULL,
  cost_nano INTEGER NOT NULL,
  unpriced INTEGER NOT NULL,
  tokens INTEGER AS (input + output + cache_read + cache_write) VIRTUAL,
  PRIMARY KEY (kind, hour, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_totals_ranked ON usage_totals (kind, cost_nano DESC, tokens DESC, key) WHERE hour = '';

CREATE TABLE usage_logs (
  session_id TEXT NOT NULL,
  log TEXT NOT NULL,
  position INTEGER NOT NULL,
  state TEXT NOT NULL,
  PRIMARY KEY (session_id, log)
) STRICT, WITHOUT ROWID;

CREATE TABLE budget_crossings (
  budget TEXT NOT NULL,
  key TEXT NOT NULL,
  limit_nano INTEGER NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (budget, key, limit_nano)
) STRICT, WITHOUT ROWID;
CREATE TABLE budget_holds (
  session_id TEXT NOT NULL,
  budget TEXT NOT NULL,
  key TEXT NOT NULL,
  limit_nano INTEGER NOT NULL,
  PRIMARY KEY (session_id, budget, key, limit_nano)
) STRICT, WITHOUT ROWID;
-- What it cost stays; its logs are gone.
CREATE TRIGGER usage_session_deleted AFTER DELETE ON sessions BEGIN
  DELETE FROM usage_logs WHERE session_id = old.id;
  DELETE FROM budget_holds WHERE session_id = old.id;
END;
`

const SUMMED = ['turns', 'input', 'output', 'cache_read', 'cache_write', 'cost_nano', 'unpriced']
const SUMMED_COLUMNS = SUMMED.join(', ')
const ADDED_UP = SUMMED.map((column) => `${column} = ${column} + excluded.${column}`).join(', ')

/**
 * A turn is a row from the first that is known of it, and grows; what belongs to no bead is a row of its own; sessions of
 * one agent go by its name; costs that were reported by agents themselves are known apart, by day.
 */
export const GROWING_TURNS = `
ALTER TABLE usage_turns ADD COLUMN state TEXT NOT NULL DEFAULT 'ended';
CREATE INDEX usage_turns_open ON usage_turns (session_id) WHERE state = 'open';
CREATE INDEX usage_beads_closed ON beads (session_id, closed_at) WHERE session_id IS NOT NULL AND closed_at IS NOT NULL;
INSERT INTO usage_totals (kind, hour, key, ${SUMMED_COLUMNS})
  SELECT 'bead', hour, '', ${SUMMED.map((column) => `sum(CASE kind WHEN 'city' THEN ${column} ELSE -${column} END)`).join(', ')}
  FROM usage_totals WHERE kind IN ('city', 'bead') GROUP BY hour
  HAVING sum(CASE kind WHEN 'city' THEN turns ELSE -turns END) > 0;
INSERT INTO usage_totals (kind, hour, key, ${SUMMED_COLUMNS})
  SELECT 'day_reported', '', day, count(*), sum(input), sum(output), sum(cache_read), sum(cache_write),
    sum(coalesce(cost_nano, 0)), sum(cost_nano IS NULL)
  FROM usage_turns WHERE source = 'report' GROUP BY day;
INSERT INTO usage_totals (kind, hour, key, ${SUMMED_COLUMNS})
  SELECT 'agent', hour, template, ${SUMMED.map((column) => `sum(${column})`).join(', ')}
  FROM usage_totals JOIN (SELECT DISTINCT agent, template FROM sessions WHERE kind = 'agent' AND agent <> template)
    AS named ON named.agent = usage_totals.key
  WHERE usage_totals.kind = 'agent' GROUP BY hour, template
  ON CONFLICT (kind, hour, key) DO UPDATE SET ${ADDED_UP};
DELETE FROM usage_totals WHERE kind = 'agent' AND key IN
  (SELECT agent FROM sessions WHERE kind = 'agent' AND agent <> template);
UPDATE usage_turns SET agent = (SELECT template FROM sessions WHERE sessions.id = session_id)
  WHERE session_id IN (SELECT id FROM sessions WHERE kind = 'agent' AND agent <> template);
`
