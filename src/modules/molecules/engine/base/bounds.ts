/** What texts come to keeps the bounds of what a bead takes, whoever makes it. */
import { TemplateFailure } from '../../../../automation/language.ts'
import { MAX_DESCRIPTION, MAX_PERSON, MAX_TITLE } from '../../../../contract/base/work.ts'
import { MAX_LABEL, MAX_METADATA_VALUE } from '../../../../contract/beads.ts'

/** A title is a name: one that is too long is cut, and one that is blank is `otherwise`. */
export function boundedTitle(title: string, otherwise: string): string {
  if (title.trim() === '') return otherwise
  if (title.length <= MAX_TITLE) return title
  const letters = Array.from(title)
  return letters.length <= MAX_TITLE ? title : `${letters.slice(0, MAX_TITLE - 1).join('')}…`
}

const LARGEST = {
  description: { most: MAX_DESCRIPTION, named: 'a description' },
  target: { most: MAX_PERSON, named: 'a target' },
  assignee: { most: MAX_PERSON, named: 'an assignee' },
  tag: { most: MAX_LABEL, named: 'a tag' },
  metadata: { most: MAX_METADATA_VALUE, named: 'a value of metadata' },
} as const

/** Anything else would be something else where it is cut: it is refused. */
export function bounded(what: keyof typeof LARGEST, text: string): string {
  const { most, named } = LARGEST[what]
  if (text.length <= most) return text
  const length = Array.from(text).length
  if (length > most) throw new TemplateFailure(`it comes to ${length} characters: ${named} has at most ${most}`)
  return text
}
