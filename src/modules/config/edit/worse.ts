/** Whether an edit makes files worse that are not valid already (decision 242). */
import type { ConfigIssue } from '../../../files/issues.ts'

/**
 * The errors of `after` that `before` did not have: an edit is no worse where there are none.
 *
 * An error is told by its file, its key and its kind; a line that moved, the position in a list and the value that is
 * wrong do not count, how often it occurs does. A file that could not be read hid what else is wrong with it, and the
 * rest of the configuration with it: what shows once it can be read is new only in another file that was `edited`.
 */
export function addedIssues(
  before: readonly ConfigIssue[],
  after: readonly ConfigIssue[],
  edited: ReadonlySet<string>,
): readonly ConfigIssue[] {
  const left = new Map<string, number>()
  for (const issue of before) left.set(kindOf(issue), (left.get(kindOf(issue)) ?? 0) + 1)
  const unread = new Set(before.filter(isUnread).map(({ file }) => file))
  return after.filter((issue) => {
    const count = left.get(kindOf(issue)) ?? 0
    left.set(kindOf(issue), count - 1)
    if (count > 0) return false
    const hidden = unread.has(issue.file) || (unread.size > 0 && !edited.has(issue.file))
    return !hidden || isUnread(issue)
  })
}

/** Such an error is about the file as a whole. */
const isUnread = ({ key }: ConfigIssue): boolean => key === ''

function kindOf(issue: ConfigIssue): string {
  const { file, key, message } = issue
  const kind = isUnread(issue) ? '' : message.replace(/`[^`]*`/g, '``').replace(/[^\s()]+:\d+|\d+/g, '0')
  return JSON.stringify([file, key.replace(/\[\d+\]/g, '[]'), kind])
}
