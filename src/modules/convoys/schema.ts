/**
 * Progress of convoys in `city.db`: how many members each has, and how many of them are closed, so that neither a list nor
 * the end of a convoy has to count. Kept by triggers, in the write that changes a bead or an edge, whoever changes it.
 *
 * G1  `total` and `closed` of a row are the members of its bead, and those of them that are closed: what it tracks and
 *     what it contains, each once.
 * G2  `due` is 1 where a member's end, or the going of the last open one, made an open convoy complete; closing it, and
 *     anything that makes it incomplete, takes that back. What a reaction has still to do is exactly the rows that are due.
 * G3  `announced` is the last event about the convoy's own state: none, `created` or `closed`; so each is said once.
 * G4  `convoy_changes` is what the log has still to say of members that came and went since it last spoke of the convoy;
 *     who came and went again is not in it.
 *
 * Other beads have such edges too; their rows are counted, and mean nothing until one becomes a convoy. Rows are changed, never replaced: SQLite
 * runs no trigger for a row that `INSERT OR REPLACE` takes away.
 */
const isClosed = (id: string) => `(SELECT count(*) FROM beads WHERE id = ${id} AND status = 'closed')`
const OPEN_CONVOY = `EXISTS (SELECT 1 FROM beads WHERE id = convoys.id AND issue_type = 'convoy' AND status <> 'closed')`

/** Children of a convoy are members too: old data has no `tracks` edges (sheet 03 §7). */
interface Membership {
  /** SQL: the convoy and the member that an edge is about. */
  readonly convoy: string
  readonly member: string
  /** SQL: another edge says the same. */
  readonly said: string
}
const tracked = (edge: string): Membership => ({
  convoy: `${edge}.issue_id`,
  member: `${edge}.depends_on_id`,
  said: `EXISTS (SELECT 1 FROM bead_deps WHERE issue_id = ${edge}.depends_on_id AND depends_on_id = ${edge}.issue_id AND type = 'parent-child')`,
})
const contained = (edge: string): Membership => ({
  convoy: `${edge}.depends_on_id`,
  member: `${edge}.issue_id`,
  said: `EXISTS (SELECT 1 FROM bead_deps WHERE issue_id = ${edge}.depends_on_id AND depends_on_id = ${edge}.issue_id AND type = 'tracks')`,
})

const came = ({ convoy, member, said }: Membership) => `
  INSERT INTO convoys (id) SELECT ${convoy} WHERE NOT EXISTS (SELECT 1 FROM convoys WHERE id = ${convoy});
  UPDATE convoys SET total = total + 1, closed = closed + ${isClosed(member)}, due = due AND ${isClosed(member)}
    WHERE id = ${convoy} AND NOT ${said};`
const went = ({ convoy, member, said }: Membership) => `
  UPDATE convoys SET total = total - 1, closed = closed - ${isClosed(member)},
    due = total > 1 AND iif(${isClosed(member)}, due, closed = total - 1 AND ${OPEN_CONVOY})
    WHERE id = ${convoy} AND NOT ${said};`

/** Ids of what has the bead as a member. */
const CONVOYS_OF = (id: string) => `SELECT issue_id FROM bead_deps WHERE depends_on_id = ${id} AND type = 'tracks'
  UNION SELECT depends_on_id FROM bead_deps WHERE issue_id = ${id} AND type = 'parent-child'`
const closedIn = (id: string) => `
  UPDATE convoys SET closed = closed + 1, due = closed + 1 = total AND ${OPEN_CONVOY} WHERE id IN (${CONVOYS_OF(id)});`
const openedIn = (id: string) => `
  UPDATE convoys SET closed = closed - 1, due = 0 WHERE id IN (${CONVOYS_OF(id)});`

/** SQL: notes that a member came or went, or strikes out the note of the opposite; of convoys of which the log has spoken. */
const noted = ({ convoy, member, said }: Membership, came: 0 | 1) => `
  DELETE FROM convoy_changes WHERE convoy = ${convoy} AND member = ${member} AND came <> ${came} AND NOT ${said};
  INSERT INTO convoy_changes (convoy, member, came) SELECT ${convoy}, ${member}, ${came}
    WHERE changes() = 0 AND NOT ${said} AND (SELECT announced FROM convoys WHERE id = ${convoy}) <> ''
      AND NOT EXISTS (SELECT 1 FROM convoy_changes WHERE convoy = ${convoy} AND member = ${member});`

const memberTriggers = (name: string, type: string, of: (edge: string) => Membership) => `
CREATE TRIGGER convoy_${name}_added AFTER INSERT ON bead_deps WHEN new.type = '${type}' BEGIN ${came(of('new'))}
END;
CREATE TRIGGER convoy_${name}_removed AFTER DELETE ON bead_deps WHEN old.type = '${type}' BEGIN ${went(of('old'))}
END;
CREATE TRIGGER convoy_${name}_retyped_from AFTER UPDATE ON bead_deps WHEN old.type = '${type}' AND new.type <> '${type}' BEGIN ${went(of('old'))}
END;
CREATE TRIGGER convoy_${name}_retyped_to AFTER UPDATE ON bead_deps WHEN new.type = '${type}' AND old.type <> '${type}' BEGIN ${came(of('new'))}
END;
CREATE TRIGGER convoy_${name}_came AFTER INSERT ON bead_deps WHEN new.type = '${type}' BEGIN ${noted(of('new'), 1)}
END;
CREATE TRIGGER convoy_${name}_went AFTER DELETE ON bead_deps WHEN old.type = '${type}' BEGIN ${noted(of('old'), 0)}
END;`

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

CREATE TABLE convoy_changes (
  n INTEGER PRIMARY KEY,
  convoy TEXT NOT NULL,
  member TEXT NOT NULL,
  came INTEGER NOT NULL
) STRICT;
CREATE INDEX convoy_changes_of ON convoy_changes (convoy, member);
CREATE INDEX convoy_changes_by ON convoy_changes (member);
${memberTriggers('member', 'tracks', tracked)}
${memberTriggers('child', 'parent-child', contained)}
CREATE TRIGGER convoy_member_closed AFTER UPDATE OF status ON beads WHEN new.status = 'closed' AND old.status <> 'closed' BEGIN ${closedIn('new.id')}
  UPDATE convoys SET due = 0 WHERE id = new.id;
END;
CREATE TRIGGER convoy_member_reopened AFTER UPDATE OF status ON beads WHEN old.status = 'closed' AND new.status <> 'closed' BEGIN ${openedIn('new.id')}
  UPDATE convoys SET announced = 'created' WHERE id = new.id AND announced = 'closed';
END;
CREATE TRIGGER convoy_member_imported AFTER INSERT ON beads WHEN new.status = 'closed' BEGIN ${closedIn('new.id')}
END;
CREATE TRIGGER convoy_member_deleted AFTER DELETE ON beads WHEN old.status = 'closed' BEGIN ${openedIn('old.id')}
END;
CREATE TRIGGER convoy_deleted AFTER DELETE ON beads BEGIN
  DELETE FROM convoys WHERE id = old.id;
END;
CREATE TRIGGER convoy_forgotten AFTER DELETE ON beads WHEN old.issue_type = 'convoy' BEGIN
  DELETE FROM convoy_changes WHERE convoy = old.id;
END;
`
