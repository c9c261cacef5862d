/**
 * Progress of convoys in `city.db`: how many members each has, and how many of them are closed, so that neither a list nor
 * the end of a convoy has to count. Kept by triggers, in the write that changes a bead or an edge, whoever changes it.
 *
 * G1  `total` and `closed` of a row are the `tracks` edges of its bead, and those of them whose target is closed.
 * G2  `due` is 1 where a member's end, or the going of the last open one, made an open convoy complete; closing it, and
 *     anything that makes it incomplete, takes that back. What a reaction has still to do is exactly the rows that are due.
 * G3  `announced` is the last event about the convoy's own state: none, `created` or `closed`; so each is said once.
 *
 * Other beads have `tracks` edges too; their rows are counted, and mean nothing. Rows are changed, never replaced: SQLite
 * runs no trigger for a row that `INSERT OR REPLACE` takes away.
 */
const isClosed = (id: string) => `(SELECT count(*) FROM beads WHERE id = ${id} AND status = 'closed')`
const OPEN_CONVOY = `EXISTS (SELECT 1 FROM beads WHERE id = convoys.id AND issue_type = 'convoy' AND status <> 'closed')`
const trackersOf = (id: string) =>
  `id IN (SELECT issue_id FROM bead_deps WHERE depends_on_id = ${id} AND type = 'tracks')`

const memberCame = `
  INSERT INTO convoys (id) SELECT new.issue_id WHERE NOT EXISTS (SELECT 1 FROM convoys WHERE id = new.issue_id);
  UPDATE convoys SET total = total + 1, closed = closed + ${isClosed('new.depends_on_id')},
    due = due AND ${isClosed('new.depends_on_id')} WHERE id = new.issue_id;`
const memberWent = `
  UPDATE convoys SET total = total - 1, closed = closed - ${isClosed('old.depends_on_id')},
    due = total > 1 AND iif(${isClosed('old.depends_on_id')}, due, closed = total - 1 AND ${OPEN_CONVOY})
    WHERE id = old.issue_id;`
const memberClosed = `
  UPDATE convoys SET closed = closed + 1, due = closed + 1 = total AND ${OPEN_CONVOY} WHERE ${trackersOf('new.id')};`
const memberOpened = (id: string) => `
  UPDATE convoys SET closed = closed - 1, due = 0 WHERE ${trackersOf(id)};`

export const CONVOYS_SCHEMA = `
CREATE TABLE convoys (
  id TEXT PRIMARY KEY,
  total INTEGER NOT NULL DEFAULT 0,
  closed INTEGER NOT NULL DEFAULT 0,
  due INTEGER NOT NULL DEFAULT 0,
  announced TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;
CREATE INDEX convoys_due ON convoys (id) WHERE due = 1;
CREATE INDEX beads_convoys ON beads (created_at DESC, id DESC) WHERE issue_type = 'convoy' AND status <> 'closed';

CREATE TRIGGER convoy_member_added AFTER INSERT ON bead_deps WHEN new.type = 'tracks' BEGIN ${memberCame}
END;
CREATE TRIGGER convoy_member_removed AFTER DELETE ON bead_deps WHEN old.type = 'tracks' BEGIN ${memberWent}
END;
CREATE TRIGGER convoy_member_retyped_from AFTER UPDATE ON bead_deps WHEN old.type = 'tracks' AND new.type <> 'tracks' BEGIN ${memberWent}
END;
CREATE TRIGGER convoy_member_retyped_to AFTER UPDATE ON bead_deps WHEN new.type = 'tracks' AND old.type <> 'tracks' BEGIN ${memberCame}
END;
CREATE TRIGGER convoy_member_closed AFTER UPDATE OF status ON beads WHEN new.status = 'closed' AND old.status <> 'closed' BEGIN ${memberClosed}
  UPDATE convoys SET due = 0 WHERE id = new.id;
END;
CREATE TRIGGER convoy_member_reopened AFTER UPDATE OF status ON beads WHEN old.status = 'closed' AND new.status <> 'closed' BEGIN ${memberOpened('new.id')}
  UPDATE convoys SET announced = 'created' WHERE id = new.id AND announced = 'closed';
END;
CREATE TRIGGER convoy_member_imported AFTER INSERT ON beads WHEN new.status = 'closed' BEGIN ${memberClosed}
END;
CREATE TRIGGER convoy_member_deleted AFTER DELETE ON beads WHEN old.status = 'closed' BEGIN ${memberOpened('old.id')}
END;
CREATE TRIGGER convoy_deleted AFTER DELETE ON beads BEGIN
  DELETE FROM convoys WHERE id = old.id;
END;
`
