/** `svcctl molecule …`: formulas at work, step by step. */

import type { Molecule, MoleculeStep } from '../../contract/automation/molecules.ts'
import type { CommandSpec, FlagSpec, Input } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { EXIT, Failure } from '../base/failure.ts'
import { parseTimeout } from '../framework/accepted.ts'
import type { AnswerOf, Call } from '../framework/declaration.ts'
import { commandsOf } from '../framework/declare.ts'
import { printItem } from '../framework/run.ts'
import { failureOf, type Spot, waitForEnd } from '../molecules/reading.ts'
import { watchMolecule } from '../molecules/watch.ts'
import { view } from '../print/view.ts'
import { MOLECULES as TABLE } from '../tables/molecules.ts'
import { BEAD } from '../views/bead-views.ts'
import { varFlag, varsFrom } from '../views/formula-vars.ts'
import { GRAPH_FORMATS, graphText } from '../views/step-graph.ts'

const DONE = ({ progress }: Pick<Molecule, 'progress'>) => `${progress.completed} of ${progress.total}`
const MORE = {
  wide: 'bead_id target rig FAILED_AT failure.reason order_run_id closed_at expires_at formula_changed revision',
  as: {
    AGE: 'created_at',
    DONE,
    FAILED_AT: 'failure.step_id',
  },
} as const
const MOLECULES = view<Molecule>()('id status DONE formula title AGE', MORE)
export const MOLECULE = view<Molecule>()('id status DONE formula title created_at', MORE)
const STARTED = view<AnswerOf<'start-molecule'>>()('ID STATUS formula title target rig bead_id WARNINGS', {
  as: {
    ID: (made) => ('id' in made ? made.id : undefined),
    STATUS: (made) => ('status' in made ? made.status : 'would be started'),
    WARNINGS: ({ warnings }) => (warnings.length === 0 ? undefined : warnings.map(({ message }) => message).join('; ')),
  },
  name: (made) => ('id' in made ? made.id : undefined),
})
const STEP_MORE = {
  wide: 'title attempt max_attempts target bead_id failure.reason failure.message due_at next_attempt_at last_error started_at finished_at',
} as const
const STEPS = view<MoleculeStep>()('id status kind assignee reason', STEP_MORE)
const DELETED = view<AnswerOf<'delete-molecule'>>()('status id beads', { name: 'id' })

export const waitFlags: readonly FlagSpec[] = [
  { flags: '--wait', description: 'Wait for its end; exit code 9 unless it passes.' },
  { flags: '--timeout <duration>', description: 'How long to wait (default: 7d); exit code 8 when it was not enough.' },
]
const LONGEST_WAIT_MS = 7 * 86_400_000

/** Waits where that is asked for, and shows it as it is then. */
export async function settleMolecule(context: Context, input: Input, spot: Spot): Promise<number> {
  const client = await context.client()
  const ms = await parseTimeout(input, LONGEST_WAIT_MS)
  await context.note(`waiting for ${spot.id}`)
  using limit = context.within(ms)
  const molecule = await waitForEnd(client, spot, limit.signal).catch((error: unknown) => {
    if (error !== limit.signal.reason || !limit.signal.aborted || context.io.signal.aborted) throw error
    throw new Failure(EXIT.timedOut, `the molecule ${spot.id} took longer than ${ms / 1000} s; it goes on`, {
      hint: `svcctl molecule watch ${spot.id}`,
    })
  })
  await printItem(context, MOLECULE, { body: molecule, text: JSON.stringify(molecule) })
  const failure = failureOf(molecule)
  if (failure !== undefined) throw failure
  return EXIT.ok
}

async function start(call: Call<'start-molecule'>): Promise<number> {
  const { context, client, cityName, said, options, input, send } = call
  const formula = input.required('formula')
  const vars = await varsFrom(client, input.texts('var'), { cityName, formula, rig: said.rig, options })
  const reply = await send(Object.keys(vars).length === 0 ? {} : { vars })
  const { body } = reply
  if (input.on('wait') && 'id' in body) return settleMolecule(context, input, { cityName, id: body.id })
  for (const { message } of body.warnings) await context.note(`warning: ${message}`)
  return printItem(context, STARTED, reply)
}

async function retry({ context, cityName, input, said, send }: Call<'retry-molecule'>): Promise<number> {
  const reply = await send()
  if (input.on('wait')) return settleMolecule(context, input, { cityName, id: String(said.id) })
  return printItem(context, MOLECULE, reply)
}

/** The question that a step waits with: a gate, or whether its work is good. */
async function answer(call: Call<'get-molecule-step'>, outcome: 'pass' | 'fail'): Promise<number> {
  const { context, client, cityName, input, options, send } = call
  const { body: step } = await send()
  const asked = step.check?.kind === 'manual' && step.check.status === 'waiting' ? step.check.bead_id : undefined
  const gate = step.kind === 'gate' && step.status === 'waiting' ? step.bead_id : undefined
  const id = asked ?? gate
  if (id === undefined)
    throw new Failure(EXIT.conflict, `the step ${step.id} waits for no answer: it is ${step.status}`, {
      ...(step.reason === undefined ? {} : { hint: step.reason }),
    })
  const reason = input.text('reason')
  const body = {
    outcome,
    ...(reason === undefined ? {} : { reason }),
    ...(outcome === 'fail' && reason !== undefined ? { failure_reason: reason } : {}),
  }
  return printItem(context, BEAD, await client.call('close-bead', { params: { cityName, id }, body, ...options }))
}

async function graph({ context, input, send }: Call<'get-molecule-graph'>): Promise<number> {
  const { body, text } = await send()
  const format = GRAPH_FORMATS.find((one) => one === input.text('as')) ?? 'text'
  await context.print.text({ text: graphText(body, format, context.io.stdout), json: text })
  return EXIT.ok
}

const command = commandsOf(TABLE)
const ID = { completes: { id: 'molecule' } } as const
const STEP = { ...ID, arguments: ['<id>', '<path>'], called: { path: 'step' } } as const
const reasonFlag: FlagSpec = { flags: '-r, --reason <reason>', description: 'Why.' }

export const commands: readonly CommandSpec[] = [
  command('molecule start', 'start-molecule', {
    also: ['get-formula', 'get-molecule'],
    arguments: ['<formula>'],
    flags: { bead: '-b', target: '-t' },
    leaves: { vars: '--var says them' },
    completes: { bead: 'bead', target: 'agent', formula: 'formula' },
    more: [varFlag, ...waitFlags],
    run: start,
    examples: {
      'svcctl molecule start patch-release --var tag=v1.2.3': 'begin a release',
      'svcctl molecule start do-and-verify --bead al-x1y --wait': 'do a bead that way; exit code 9 unless it passes',
      'svcctl molecule start do-and-verify --bead al-x1y --dry-run': 'whether it could be started',
    },
  }),
  command('molecule list', 'list-molecules', {
    flags: { status: '-s', formula: '-f', bead: '-b', target: '-t' },
    completes: { bead: 'bead', target: 'agent', formula: 'formula' },
    view: MOLECULES,
    examples: {
      'svcctl molecule list -s active -s waiting': 'what goes on',
      'svcctl molecule list -s failed --formula patch-release': 'releases that failed',
    },
  }),
  command('molecule get', 'get-molecule', {
    ...ID,
    arguments: ['<id...>'],
    view: MOLECULE,
    rows: MOLECULES,
    leaves: { index: 'molecule watch follows it', wait: 'molecule watch follows it' },
    examples: { 'svcctl molecule get al-m0l -o json': 'with its variables and its failure' },
  }),
  command('molecule steps', 'list-molecule-steps', {
    ...ID,
    arguments: ['<id>'],
    flags: { status: '-s' },
    view: STEPS,
    examples: {
      'svcctl molecule steps al-m0l': 'each step, who has it, what it waits for',
      'svcctl molecule steps al-m0l -s failed -o wide': 'what failed, and why',
    },
  }),
  command('molecule watch', 'get-molecule', {
    ...ID,
    also: ['list-molecule-steps', 'stream-city-events'],
    summary: 'Watch a molecule until it ends',
    description:
      'On a terminal its steps as a tree, drawn anew with every change; elsewhere a line for each change. Exit code 9 unless it passes.',
    arguments: ['<id>'],
    leaves: { index: 'it follows all changes', wait: 'it follows all changes' },
    run: async ({ context, cityName, said }) => watchMolecule(context, { cityName, id: String(said.id) }),
    examples: {
      'svcctl molecule watch al-m0l': 'the steps as they go',
      'svcctl molecule watch al-m0l -o jsonl': 'a line of JSON for each change',
    },
  }),
  command('molecule graph', 'get-molecule-graph', {
    ...ID,
    arguments: ['<id>'],
    says: { expand: 'Show the items of this step.' },
    more: [{ flags: '--as <format>', description: 'As text (the default), or as Mermaid.', choices: GRAPH_FORMATS }],
    run: graph,
    examples: {
      'svcctl molecule graph al-m0l --expand port': 'with each item of a step that repeats',
      'svcctl molecule graph al-m0l --as mermaid': 'a chart for a document',
    },
  }),
  command('molecule approve', 'get-molecule-step', {
    ...STEP,
    also: ['close-bead'],
    summary: 'Answer a gate, or a check by a person, with yes',
    more: [reasonFlag],
    run: (call) => answer(call, 'pass'),
    examples: { 'svcctl molecule approve al-m0l approve': 'go on' },
  }),
  command('molecule reject', 'get-molecule-step', {
    ...STEP,
    also: ['close-bead'],
    summary: 'Answer a gate, or a check by a person, with no',
    description: 'A check by a person begins the next attempt, where there is one, with the reason in its description.',
    more: [reasonFlag],
    run: (call) => answer(call, 'fail'),
    examples: { 'svcctl molecule reject al-m0l polish.2.apply -r "the tests are gone"': 'not yet' },
  }),
  command('molecule cancel', 'cancel-molecule', {
    ...ID,
    arguments: ['<id...>'],
    flags: { reason: '-r' },
    asks: (names) => `Cancel ${names}? Who works on it is interrupted.`,
    view: MOLECULE,
    rows: MOLECULES,
    examples: { 'svcctl molecule cancel al-m0l -r "wrong tag" --yes': 'end it now' },
  }),
  command('molecule retry', 'retry-molecule', {
    ...ID,
    also: ['get-molecule'],
    arguments: ['<id>'],
    more: waitFlags,
    run: retry,
    examples: { 'svcctl molecule retry al-m0l': 'what failed, and what was skipped because of it, starts again' },
  }),
  command('molecule delete', 'delete-molecule', {
    ...ID,
    arguments: ['<id...>'],
    asks: (names) => `Delete ${names} with all beads of its steps?`,
    view: DELETED,
    examples: { 'svcctl molecule delete al-m0l --yes': 'one that has ended' },
  }),
]
