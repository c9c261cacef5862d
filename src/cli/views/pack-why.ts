/** Why a pack is there, as text: what it is, each way that leads to it, and what it brings. */
import type { AnswerOf } from '../framework/declaration.ts'

type Why = AnswerOf<'explain-pack'>
type Reason = Why['packs'][number]
type Step = Reason['ways'][number]['steps'][number]

const MAX_NAMES = 20
const MAX_RUNS = 20

export const whyText = ({ packs }: Why): string => packs.map((reason) => `${linesOf(reason).join('\n')}\n`).join('\n')

function linesOf({ label, title, kind, pin, state, trusted, ways, provides, runs }: Reason): string[] {
  const called = title === undefined ? '' : ` (${title})`
  const at = pin === undefined ? '' : `, ${pin.version} at ${pin.commit}`
  return [
    `${label}${called}: ${kind}, ${state}, ${trusted ? 'trusted' : 'not trusted'}${at}`,
    'imported by',
    ...ways.map(({ scope, steps }) => `  ${scope}: ${steps.map(stepText).join(' > ')}`),
    'brings',
    ...Object.entries(provides).flatMap(([what, names]) => (names.length === 0 ? [] : [`  ${what}: ${some(names)}`])),
    'would run',
    ...runs.slice(0, MAX_RUNS).map(({ file, key, command }) => `  ${file}${key === '' ? '' : `: ${key}`}: ${command}`),
    ...(runs.length > MAX_RUNS ? [`  and ${runs.length - MAX_RUNS} more`] : []),
  ].filter((line, index, all) => line.startsWith(' ') || index === 0 || all[index + 1]?.startsWith(' ') === true)
}

const stepText = ({ name, version, file, line }: Step): string =>
  `${name}${version === undefined ? '' : ` ${version}`} (${file}:${line})`

const some = (names: readonly string[]): string =>
  names.length > MAX_NAMES
    ? `${names.slice(0, MAX_NAMES).join(', ')} and ${names.length - MAX_NAMES} more`
    : names.join(', ')
