/**
 * Giving work to somebody, in the caller's write (decisions 108, 109).
 *
 * G1  A bead is routed; with a formula, said or the agent's own, a molecule is started about it instead.
 * G2  Nobody loses work unasked: what somebody has is refused, or left out of a convoy with a warning, unless `reassign`.
 * G3  What a molecule works on or consists of is not given away under its hands.
 */
import type { Value } from '../../automation/plan.ts'
import type { WorkWarning } from '../../contract/automation/molecules.ts'
import {
  MAX_LAUNCHED,
  MAX_SLUNG,
  type SlingChild,
  type SlingOutcome,
  type SlingOutputBody,
  type SlingRequest,
} from '../../contract/automation/sling.ts'
import { cut } from '../../contract/base/text.ts'
import { MAX_TITLE } from '../../contract/base/work.ts'
import type { Tx } from '../../kernel/database.ts'
import { unknownName } from '../../kernel/near-names.ts'
import { invalidField, type Problem, problem } from '../../kernel/problem.ts'
import type { SlingCity, SlungBead } from './ports.ts'

const CONVOY = 'convoy'

/** What a request comes to once names are looked up. */
interface Slinging {
  readonly request: SlingRequest
  readonly rig: string
  readonly target: string
  readonly formula: string | undefined
  readonly actor: string
  readonly setsCommands: boolean
}

interface Slung {
  readonly outcome: SlingOutcome
  readonly molecule?: string
}

/** Who gives work away. */
export interface Slinger {
  readonly actor: string
  /** Whether a command among the variables may be any (the right `city`). */
  readonly setsCommands: boolean
}

export function sling(tx: Tx, city: SlingCity, request: SlingRequest, slinger: Slinger): SlingOutputBody {
  return new Sling(tx, city, request, slinger).run()
}

class Sling {
  readonly #tx: Tx
  readonly #city: SlingCity
  readonly #slinging: Slinging
  readonly #bead: SlungBead | undefined
  readonly #warnings: WorkWarning[] = []

  constructor(tx: Tx, city: SlingCity, request: SlingRequest, slinger: Slinger) {
    assertShape(request)
    this.#tx = tx
    this.#city = city
    this.#bead = request.bead === undefined ? undefined : needBead(city, request.bead)
    const rig = rigOf(city, request, this.#bead)
    const target = targetOf(city, request, rig)
    const formula = request.formula ?? (request.no_formula === true ? undefined : city.targets.formulaOf(target))
    this.#slinging = { request, rig, target, formula, ...slinger }
  }

  run(): SlingOutputBody {
    const { request, target, formula } = this.#slinging
    this.#warn(this.#city.targets.idle(target))
    const bead = this.#bead
    if (bead?.issue_type === CONVOY && request.formula === undefined) return this.#convoy(bead)
    if (formula === undefined) assertPlain(request)
    if (bead !== undefined) return this.#answer(bead.id, this.#one(bead))
    if (request.text === undefined) return this.#answer(undefined, this.#launch(undefined))
    const made = this.#create(request.text)
    return this.#answer(made.id, this.#one(made))
  }

  #answer(bead: string | undefined, { outcome, molecule }: Slung, children: SlingChild[] = []): SlingOutputBody {
    return {
      outcome,
      target: this.#slinging.target,
      ...(bead === undefined ? {} : { bead }),
      ...(molecule === undefined ? {} : { molecule }),
      children,
      warnings: this.#warnings,
    }
  }

  #one(bead: SlungBead): Slung {
    const refusal = refusalOf(bead, this.#slinging)
    if (refusal !== undefined) throw refusal
    return this.#slinging.formula === undefined ? this.#route(bead) : this.#launch(bead.id)
  }

  #route({ id, routed_to, assignee, status }: SlungBead): Slung {
    const { target, actor } = this.#slinging
    if (routed_to === target && assignee === null && status === 'open') return { outcome: 'unchanged' }
    this.#city.beads.route(this.#tx, id, target, actor)
    return { outcome: 'routed' }
  }

  #launch(bead: string | undefined): Slung {
    const { request, rig, target, formula = '', actor, setsCommands } = this.#slinging
    const started = this.#city.start(this.#tx, {
      formula,
      vars: request.vars === undefined ? undefined : valuesOf(request.vars),
      title: request.title,
      rig,
      bead,
      target,
      reassign: request.reassign === true,
      replace: request.replace === true,
      setsCommands,
      actor,
    })
    for (const warning of started.warnings) this.#warn(warning)
    return { outcome: 'launched', molecule: started.id }
  }

  #create(text: string): SlungBead {
    const { request, rig, actor } = this.#slinging
    const task = { ...taskOf(text, request.title), rig }
    return needBead(this.#city, this.#city.beads.create(this.#tx, task, actor))
  }

  /** Each open member by itself; what cannot be given away is left, and told of. */
  #convoy(convoy: SlungBead): SlingOutputBody {
    const { formula, request } = this.#slinging
    if (convoy.status === 'closed') throw closed(convoy)
    if (convoy.driver !== undefined) throw driven(convoy, convoy.driver)
    if (formula === undefined) assertPlain(request)
    const most = formula === undefined ? MAX_SLUNG : MAX_LAUNCHED
    const members = this.#city.beads.members(convoy.id, most + 1)
    if (members.length > most) throw tooMany(convoy, most, formula)
    const children = members.flatMap((member) => this.#member(member))
    if (children.length === 0) this.#warn({ code: 'nothing_to_give', message: `${convoy.id} has nothing to give away` })
    const has = (outcome: SlingOutcome) => children.some((child) => child.outcome === outcome)
    const outcome = has('launched') ? 'launched' : has('routed') ? 'routed' : 'unchanged'
    return this.#answer(convoy.id, { outcome }, children)
  }

  #member(member: SlungBead): readonly SlingChild[] {
    const refusal = refusalOf(member, this.#slinging)
    if (refusal === undefined) return [{ bead: member.id, ...this.#one(member) }]
    this.#warn({ code: LEFT[refusal.code] ?? 'not_given', message: `${member.id} is left: ${refusal.message}` })
    return []
  }

  #warn(warning: WorkWarning | undefined): void {
    const isNew = !this.#warnings.some(({ code, message }) => code === warning?.code && message === warning?.message)
    if (warning !== undefined && isNew) this.#warnings.push(warning)
  }
}

/** Codes of warnings about members that are left, by that of the refusal of one bead. */
const LEFT: Readonly<Record<string, string>> = {
  'conflict-claimed': 'member_held',
  'molecule-live': 'member_driven',
  'invalid-request': 'member_no_work',
}

function assertShape({ bead, text, formula, no_formula }: SlingRequest): void {
  if (bead !== undefined && text !== undefined) throw invalidField('body.text', 'is not taken with `bead`')
  if (formula !== undefined && no_formula === true)
    throw invalidField('body.no_formula', 'is not taken with `formula`', true)
  if (bead === undefined && text === undefined && formula === undefined)
    throw invalidField('body', 'says nothing to give: `bead`, `text` or `formula`')
  if (text !== undefined && text.trim() === '') throw invalidField('body.text', 'is blank', text)
}

/** What only a molecule takes. */
function assertPlain({ vars, title, text, replace }: SlingRequest): void {
  const said = {
    vars: vars !== undefined,
    title: title !== undefined && text === undefined,
    replace: replace === true,
  }
  for (const [name, isSaid] of Object.entries(said))
    if (isSaid) throw invalidField(`body.${name}`, 'goes with a formula, and there is none')
}

function needBead({ beads }: SlingCity, id: string): SlungBead {
  const bead = beads.find(id)
  if (bead !== undefined) return bead
  const errors = [{ location: 'body.bead', message: 'is the id of no bead', value: id }]
  throw problem('bead-not-found', `there is no bead ${id}`, { errors })
}

function rigOf({ targets }: SlingCity, { rig }: SlingRequest, bead: SlungBead | undefined): string {
  if (rig !== undefined && !targets.hasRig(rig)) throw unknownName('rig-not-found', 'rig', rig, targets.rigNames())
  if (rig !== undefined && bead !== undefined && bead.rig !== rig)
    throw invalidField('body.rig', `is not where ${bead.id} belongs: ${bead.rig === '' ? 'the city' : bead.rig}`, rig)
  return rig ?? bead?.rig ?? ''
}

function targetOf({ targets }: SlingCity, request: SlingRequest, rig: string): string {
  const word = request.target ?? (rig === '' ? undefined : targets.defaultOf(rig))
  if (word === undefined) {
    const where = rig === '' ? 'the city has no default' : `the rig ${rig} has no \`default_sling_target\``
    throw invalidField('body.target', `is required, who gets it: ${where}`)
  }
  const { target, known } = targets.resolve(word, rig)
  if (known) return target
  const refused = unknownName('target-not-found', 'agent or session', word, targets.names())
  throw problem('target-not-found', refused.message, {
    errors: [{ location: 'body.target', message: 'is the name of no agent or session', value: word }],
  })
}

/** Why a bead cannot be given away; undefined where it can. */
function refusalOf(bead: SlungBead, { request, formula }: Slinging): Problem | undefined {
  const { id, status, assignee, driver, partOf, isWork, issue_type } = bead
  if (partOf !== undefined)
    return problem('conflict-wrong-state', `the bead ${id} is a part of the molecule ${partOf}`, at(id))
  if (status === 'closed') return closed(bead)
  const isAttached = issue_type === CONVOY && formula !== undefined
  if (issue_type === 'epic' || !(isWork || isAttached))
    return problem('invalid-request', `the bead ${id} is no work by itself: it is of the type ${issue_type}`, at(id))
  if (driver !== undefined && !(formula !== undefined && request.replace === true)) return driven(bead, driver)
  if (assignee !== null && request.reassign !== true)
    return problem('conflict-claimed', `${assignee} has ${id}; \`reassign\` takes it from them`, at(id))
  return undefined
}

const at = (value: string) => ({ errors: [{ location: 'body.bead', message: 'cannot be given away', value }] })

/** With a formula each member is a molecule, and all of them are one write, for which everybody else waits. */
function tooMany({ id }: SlungBead, most: number, formula: string | undefined): Problem {
  const instead =
    formula === undefined
      ? ''
      : `, and each would be a molecule of ${formula}: start one for all of them with \`formula\`, or none with \`no_formula\``
  return problem('conflict-wrong-state', `${id} has more than ${most} open members${instead}`, at(id))
}

const closed = ({ id }: SlungBead): Problem =>
  problem('conflict-wrong-state', `the bead ${id} is closed: reopen it first`, at(id))

const driven = ({ id }: SlungBead, driver: string): Problem =>
  problem('molecule-live', `the molecule ${driver} works on ${id}: \`replace\` with a formula cancels it first`, at(id))

/** The first line is the title; what does not fit there is the description. */
function taskOf(text: string, title: string | undefined) {
  const trimmed = text.trim()
  const [first = ''] = trimmed.split('\n', 1)
  const said = title?.trim() || cut(first.trim(), MAX_TITLE)
  return { title: said, description: said === trimmed ? null : trimmed }
}

/** A body is JSON, and so is everything in it. */
const valuesOf = (vars: Readonly<Record<string, unknown>>): Readonly<Record<string, Value>> =>
  JSON.parse(JSON.stringify(vars))
