/** What the fuzzed city does by itself: formulas of every construct, molecules of them that stand still, orders and their runs. */
import type { Fields } from './crash-client.ts'

/** Of the beads of steps: requests that close them go on with the molecule. */
const WORK = `formula = "work"
title = "Work on {{ topic }}"
[vars]
topic = "things"
rounds = 2
[vars.list]
type = "json"
default = ["a", "b"]
[[steps]]
id = "do"
title = "Do {{ topic }}"
output = ["said"]
retry = { max_attempts = 3, backoff = "1s" }
check = { exec = "true" }
[[steps]]
id = "ask"
title = "Good enough?"
gate = { human = true }
[[steps]]
id = "soak"
gate = { timer = "24h" }
[[steps]]
id = "heard"
gate = { event = "fuzz.heard", match = { topic = "{{ topic }}" } }
[[steps]]
id = "each"
title = "Do {{ item }}"
for_each = { in = "list", max_parallel = 2 }
[[steps]]
id = "polish"
needs = ["do"]
on_fail = "continue"
loop = { count = "rounds" }
[[steps.children]]
id = "look"
title = "Look at {{ steps.do.output.said }}, round {{ item }}"
check = { manual = "Good?" }
[[steps]]
id = "last"
title = "Sum up"
needs = ["ask", "polish"]
always = true
`
export const AUTOMATION_FILES: { readonly [path: string]: string } = {
  'formulas/work.toml': WORK,
  'formulas/over.toml': `formula = "over"
[[steps]]
id = "each"
for_each = { in = "bead.members", exclusive = true }
expand = "part"
with = { what = "{{ item.title }}" }
`,
  'formulas/part.toml':
    'formula = "part"\n[vars]\nwhat = "it"\n[[steps]]\nid = "do"\ntitle = "{{ what }}"\ntarget = "worker"\n',
  'formulas/broken.toml': 'formula = "broken"\n[[steps]]\nid = "a"\ntitle = "{{ nobody }}"\n',
  'formulas/spare.toml': 'formula = "spare"\n[[steps]]\nid = "a"\ntitle = "A"\n',
  'formulas/fails.toml':
    'formula = "fails"\n[vars]\nlist = "none"\n[[steps]]\nid = "a"\ntitle = "A"\nfor_each = { in = "list" }\n',
  'orders/hand.toml': '[order]\nexec = "cat"\ntrigger = "manual"\n[order.vars]\ntopic = "it"\n',
  'orders/asked.toml':
    '[order]\nformula = "work"\ntrigger = "condition"\ncheck = "false"\ninterval = "1h"\n[order.vars]\ntopic = "asked"\n',
  'orders/heard.toml':
    '[order]\nformula = "spare"\ntrigger = "event"\non = "fuzz.wanted"\ntitle = "{{ events[0].subject }}"\n',
  'orders/nightly.toml': '[order]\nexec = "true"\ntrigger = "cron"\nschedule = "0 3 * * *"\nscope = "rig"\n',
  'orders/spare.toml': '[order]\nexec = "true"\ntrigger = "cooldown"\ninterval = "24h"\n',
}
const FORMULAS = ['work', 'work', 'over', 'part', 'spare', 'fails', 'broken']
/** What files that requests write are called in themselves. */
const WRITTEN = 'fuzzed'
const FEWEST_LIVE = 3
const FEWEST_ENDED = 2
const MOST_MOLECULES = 25

export interface HeldAutomation {
  readonly molecules: readonly Fields[]
  /** Of each molecule that was looked at: `{molecule, path}`. */
  readonly steps: readonly { readonly molecule: string; readonly path: string }[]
  readonly formulas: readonly string[]
  readonly orders: readonly Fields[]
  readonly runs: readonly string[]
}
export const NO_AUTOMATION: HeldAutomation = { molecules: [], steps: [], formulas: [], orders: [], runs: [] }

type List = (path: string) => Promise<readonly Fields[] | undefined>
type Send = (method: string, path: string, body?: object) => Promise<unknown>

const LIVE = new Set(['pending', 'active', 'waiting'])
const isLive = ({ status }: Fields) => LIVE.has(String(status))

export async function lookAtAutomation(list: List, before: HeldAutomation): Promise<HeldAutomation> {
  const names = (items: readonly Fields[] | undefined, key: string) => items?.map((item) => String(item[key]))
  const molecules = (await list('/molecules?limit=40')) ?? before.molecules
  const steps = await Promise.all(
    molecules.slice(0, 6).map(async ({ id }) => {
      const found = (await list(`/molecules/${String(id)}/steps?superseded=true&limit=20`)) ?? []
      return found.map((step) => ({ molecule: String(id), path: String(step['id']) }))
    }),
  )
  return {
    molecules,
    steps: steps.flat(),
    formulas: names(await list('/formulas'), 'name') ?? before.formulas,
    orders: (await list('/orders')) ?? before.orders,
    runs: names(await list('/orders/history?limit=20'), 'id') ?? before.runs,
  }
}

/** Molecules that wait, some that failed, runs of orders; the oldest go where there are too many. */
export async function tendAutomation(send: Send, { molecules }: HeldAutomation, bead: string | undefined) {
  const live = molecules.filter(isLive)
  for (const { id } of molecules.slice(MOST_MOLECULES)) {
    await send('POST', `/molecules/${String(id)}/cancel`, { reason: 'enough' })
    await send('DELETE', `/molecules/${String(id)}`)
  }
  for (let n = live.length; n < FEWEST_LIVE; n++)
    await send('POST', '/molecules', { formula: 'work', target: 'worker', vars: { topic: `t${n}` } })
  if (bead !== undefined && !live.some(({ bead_id }) => bead_id !== undefined))
    await send('POST', '/molecules', { formula: 'spare', bead, target: 'worker', reassign: true })
  if (!molecules.some(({ status }) => status === 'failed')) await send('POST', '/molecules', { formula: 'fails' })
  const [first] = live
  if (first !== undefined && molecules.length - live.length < FEWEST_ENDED)
    await send('POST', `/molecules/${String(first['id'])}/cancel`, {})
  await send('POST', '/orders/hand/run', { vars: { topic: 'fuzz' } })
  for (const name of ['hand', 'asked', 'heard']) await send('POST', `/orders/${name}/enable`)
}

/** Names of files that no request may keep. */
export const isOwnDocument = (path: string): boolean => AUTOMATION_FILES[path] !== undefined

export const AUTOMATION_BODIES: { readonly [operationId: string]: readonly object[] } = {
  'start-molecule': [
    { formula: 'work', target: 'worker', vars: { topic: '{{ topic }}', list: ['$(id)', '\u0007'] } },
    { formula: 'work', target: 'worker', dry_run: true, title: 'Try' },
    { formula: 'spare', keep: '1s' },
  ],
  'cancel-molecule': [{}, { reason: 'enough' }],
  sling: [
    { target: 'worker', text: 'Do this' },
    { target: 'worker', formula: 'work' },
    { target: 'worker', formula: 'work', text: 'About this', vars: { topic: 'x' }, dry_run: true },
  ],
  'preview-formula': [{}, { vars: { topic: 'x' }, target: 'worker' }],
  'validate-formula': [{ source: WORK }, { source: 'formula = "x"\nextends = ["work"]\n' }],
  'validate-order': [{ source: '[order]\nexec = "true"\ntrigger = "manual"\n' }],
  'run-order': [{}, { vars: { topic: 'y' }, force: true }],
  'close-bead': [
    { outcome: 'pass', output: { said: 'well' } },
    { outcome: 'fail', reason: 'no' },
  ],
}

const each = (name: string, values: readonly string[]) => values.map((value) => ({ [name]: value }))
const idsOf = (items: readonly Fields[]): readonly string[] => items.map(({ id }) => String(id))
const ended = ({ molecules }: HeldAutomation) => molecules.filter((one) => !isLive(one))
const failed = ({ molecules }: HeldAutomation) => molecules.filter(({ status }) => status === 'failed')
const live = ({ molecules }: HeldAutomation) => molecules.filter(isLive)

type Place = (held: HeldAutomation) => readonly { readonly [parameter: string]: string }[]
export const AUTOMATION_PLACES: readonly (readonly [string, Place])[] = [
  ['/steps/{path}', ({ steps }) => steps.map(({ molecule, path }) => ({ id: molecule, path }))],
  ['/molecules/{id}/retry', (held) => each('id', [...idsOf(failed(held)), ...idsOf(held.molecules).slice(0, 1)])],
  ['/molecules/{id}/cancel', (held) => each('id', [...idsOf(live(held)), ...idsOf(ended(held)).slice(0, 1)])],
  ['/molecules/{id}', ({ molecules }) => each('id', idsOf(molecules))],
  ['/formulas/{name}/preview', () => each('name', FORMULAS)],
  ['/formulas/{name}', ({ formulas }) => each('name', [...FORMULAS, WRITTEN, WRITTEN, WRITTEN, WRITTEN, ...formulas])],
  ['/orders/history/{run_id}', ({ runs }) => each('run_id', runs)],
  [
    '/orders/{name}',
    ({ orders }) => each('name', [WRITTEN, WRITTEN, ...new Set(orders.map((one) => String(one['name'])))]),
  ],
]

export const AUTOMATION_FIELDS: { readonly [field: string]: (held: HeldAutomation) => readonly string[] } = {
  formula: () => FORMULAS,
  bead: ({ molecules }) => molecules.flatMap((one) => (one['bead_id'] === undefined ? [] : [String(one['bead_id'])])),
  order: ({ orders }) => orders.map((one) => String(one['name'])),
}
