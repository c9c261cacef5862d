/** The last state of each formula and order that the log has told of: what changed while nobody looked is told at the next start. */

/** Appended to the migrations of a city's store. */
export const FORMULAS_SCHEMA = `
CREATE TABLE document_stamps (
  key TEXT PRIMARY KEY, -- kind, rig, name
  stamp TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE document_state (id INTEGER PRIMARY KEY CHECK (id = 1), seen_at INTEGER NOT NULL) STRICT;
`
