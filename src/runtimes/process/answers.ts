/** Which option of a question an answer means. */
import type { Answer, Pending, PermissionKind } from './runtime.ts'

const WANTED: Readonly<Record<'approve' | 'approve_always' | 'deny', readonly PermissionKind[]>> = {
  approve: ['allow_once'],
  approve_always: ['allow_always'],
  deny: ['reject_once', 'reject_always'],
}

/** Place of the option that means this answer; -1 where none does for certain. */
export function optionFor(
  { options }: Pick<Pending, 'options'>,
  answer: Exclude<Answer, { action: 'cancel' }>,
): number {
  if (answer.action === 'option') return options.findIndex(({ id }) => id === answer.optionId)
  for (const wanted of WANTED[answer.action]) {
    const found = options.findIndex(({ kind }) => kind === wanted)
    if (found !== -1) return found
  }
  return -1
}
