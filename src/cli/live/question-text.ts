/** A question of an agent as lines for people (pure). */
import type { Asked } from '../views/needs.ts'
import { printableLines } from '../views/turn-text.ts'
import type { Outcome } from './answering.ts'
import { choicesOf, possible, promptOf, type Question, takesText } from './choices.ts'

/** Who asks. */
export const askerOf = ({ alias, session_id }: Pick<Asked, 'alias' | 'session_id'>): string => alias ?? session_id

/** What is asked, and about what. */
export function askedLines(question: Question): readonly string[] {
  const prompt = promptOf(question)
  return [...printableLines(prompt).split('\n'), ...details(question, prompt).map((line) => `  ${line}`)]
}

export function questionLines(question: Question): readonly string[] {
  return [
    ...askedLines(question),
    ...choicesOf(question).map(({ label }, at) => `  ${at + 1}) ${printableLines(label)}`),
    ...(takesText(question) ? ['  or an answer in your own words'] : []),
  ]
}

/** What the harness says besides, without what is said already or names things for programs. */
function details({ metadata = {} }: Question, prompt: string): readonly string[] {
  return Object.entries(metadata)
    .filter(([key, value]) => !key.endsWith('_id') && value !== prompt)
    .map(([key, value]) => `${key.replaceAll('_', ' ')}: ${printableLines(value)}`)
}

/** What became of an answer, in a sentence. */
export function outcomeText(
  outcome: Outcome,
  { name, question }: { readonly name: string; readonly question: Question | undefined },
): string {
  if (outcome === 'answered') return `${name} has the answer`
  if (outcome === 'gone') return `${name} asks that no longer: somebody else has answered it, or it was taken back`
  return `${name} has no such answer${question === undefined ? '' : `: ${possible(question)}`}`
}
