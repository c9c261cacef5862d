/** `svcctl sling`: gives work to somebody. */

import { ApiProblem } from '../../client/problems.ts'
import type { SlingOutputBody } from '../../contract/automation/sling.ts'
import type { CommandSpec } from '../base/command.ts'
import { EXIT, Failure, usageError } from '../base/failure.ts'
import type { Call } from '../framework/declaration.ts'
import { commandsOf } from '../framework/declare.ts'
import { readWords } from '../framework/fields.ts'
import { printItem } from '../framework/run.ts'
import { view } from '../print/view.ts'
import { SLING as TABLE } from '../tables/sling.ts'
import { beadsAmong, looksLikeBead } from '../views/bead-words.ts'
import { varFlag, varsFrom } from '../views/formula-vars.ts'
import { settleMolecule, waitFlags } from './molecule.ts'

const SLUNG = view<SlingOutputBody>()('outcome target bead molecule CHILDREN', {
  as: {
    CHILDREN: ({ children }) =>
      children.length === 0 ? undefined : children.map(({ bead, outcome }) => `${bead} ${outcome}`).join(', '),
  },
  name: ({ molecule, bead, target }) => molecule ?? bead ?? target,
})

type Said = Call<'sling'>['said']

/** The first word is who gets it, unless `--target` says that or it can only be what is given; the others are what. */
async function toldBy(call: Call<'sling'>): Promise<Pick<Said, 'target' | 'bead' | 'text'>> {
  const { input, said } = call
  const [first, ...rest] = [input.text('agent') ?? [], ...input.texts('words')].flat()
  if (first === undefined) return {}
  if (said.target === undefined && (await isTarget(call, first, rest)))
    return { target: first, ...(await what(call, rest)) }
  return what(call, [first, ...rest])
}

/** A rig says who gets work that names nobody, so there the first word may be one of the task. */
async function isTarget(call: Call<'sling'>, first: string, rest: readonly string[]): Promise<boolean> {
  const { client, cityName, said, options } = call
  const { rig, bead, formula } = said
  if (rig === undefined) return rest.length > 0 || bead !== undefined || formula !== undefined
  const body = { target: first, rig, text: 'task', no_formula: true, dry_run: true }
  try {
    await client.call('sling', { params: { cityName }, body, signal: options.signal })
    return true
  } catch (error) {
    if (error instanceof ApiProblem && error.code === 'target-not-found') return false
    throw error
  }
}

/** One word that is the id of a bead is that bead; others are a task. */
async function what(call: Call<'sling'>, words: readonly string[]): Promise<Pick<Said, 'bead' | 'text'>> {
  const { context, client, said } = call
  const [word] = words
  if (word === undefined) return {}
  if (said.bead !== undefined)
    throw usageError(`--bead ${said.bead} is what is given: "${words.join(' ')}" is too much`, HOW)
  if (!words.every(looksLikeBead)) return { text: await readWords(context.io, words) }
  const [bead] = await beadsAmong(client, words, call)
  if (words.length === 1 && bead !== undefined) return { bead }
  if (bead !== undefined)
    throw usageError('one bead at a time', 'several are given as a convoy: svcctl convoy create TITLE --item ID …')
  if (words.length > 1) return { text: words.join(' ') }
  throw new Failure(EXIT.notFound, `there is no bead ${word}`, {
    hint: `for a new task of that name: echo ${word} | svcctl sling TARGET -`,
  })
}

const HOW = 'svcctl sling TARGET BEAD, or svcctl sling TARGET "what to do"'

async function sling(call: Call<'sling'>): Promise<number> {
  const { context, client, cityName, said, options, input, send } = call
  const { formula, rig } = said
  const texts = input.texts('var')
  if (texts.length > 0 && formula === undefined)
    throw usageError('--var goes with --formula', 'its declarations say how a value is read')
  const vars = formula === undefined ? {} : await varsFrom(client, texts, { cityName, formula, rig, options })
  const reply = await send({ ...(await toldBy(call)), ...(Object.keys(vars).length === 0 ? {} : { vars }) })
  const { body } = reply
  for (const { message } of body.warnings) await context.note(`warning: ${message}`)
  if (!input.on('wait')) return printItem(context, SLUNG, reply)
  if (body.molecule !== undefined) return settleMolecule(context, input, { cityName, id: body.molecule })
  await printItem(context, SLUNG, reply)
  await context.note('no molecule was started: there is nothing to wait for')
  return EXIT.ok
}

export const commands: readonly CommandSpec[] = [
  commandsOf(TABLE)('sling', 'sling', {
    also: ['get-formula', 'get-molecule'],
    operands: [
      {
        name: '[agent]',
        description: 'Who gets it, unless --target or the rig says that.',
        field: 'target',
        complete: 'agent',
      },
      { name: '[words...]', description: 'A bead by its id, or a new task in words; - for stdin.', field: 'text' },
    ],
    flags: { target: '-t', bead: '-b', formula: '-f', no_formula: '--without-formula' },
    leaves: { vars: '--var says them', text: 'it is the words' },
    completes: { target: 'agent', bead: 'bead', formula: 'formula' },
    more: [varFlag, ...waitFlags],
    run: sling,
    examples: {
      'svcctl sling worker "Fix the login"': 'a new task for an agent',
      'svcctl sling shop/worker al-x1y': 'let it have a bead',
      'svcctl sling worker al-x1y --formula do-and-verify --wait': 'done in a certain way',
      'svcctl sling --rig shop "Fix the login"': 'for whoever gets the work of a rig',
      'svcctl sling worker al-c0n --dry-run': 'what would become of the members of a convoy',
    },
  }),
]
