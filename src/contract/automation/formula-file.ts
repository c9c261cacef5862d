/**
 * Every key that a formula's file may have (decisions 81–86), declared once: the grammar checks by it, editors get their
 * JSON Schema from it, and the reference page its tables. What a schema cannot say, the grammar says beside it.
 */
import { anything, array, optional, raw, type Schema } from '../base/schema.ts'
import { duration, flag, list, map, note, oneOf, table, text, texts, whole } from '../base/settings.ts'
import type { JsonValue } from './var-text.ts'
import { VAR_TYPES } from './var-text.ts'

export const FORMULA_NAME = '^[a-zA-Z0-9](?:[a-zA-Z0-9_-]{0,62}[a-zA-Z0-9])?$'
export const FORMULA_NAME_TEXT = 'letters, digits, `_` and `-`, at most 64, with a letter or digit at both ends'
export const STEP_ID = '^[a-z][a-z0-9_-]{0,63}$'
const STEP_ID_TEXT = 'lower-case letters, digits, `_` and `-`, at most 64, beginning with a letter'
export const VAR_NAME = '^[A-Za-z_][A-Za-z0-9_]{0,63}$'
export const VAR_NAME_TEXT = 'letters, digits and `_`, at most 64, not beginning with a digit'
const ENV_NAME = '^(?!SVC_)[A-Za-z_][A-Za-z0-9_]*$'
const ENV_NAME_TEXT = 'the name of a variable of the environment; those of `SVC_` are made for every command'
const EVENT_FILTER = '^[a-z0-9_-]+(\\.[a-z0-9_-]+)*(\\.\\*)?$'
const EVENT_FILTER_TEXT = 'a type of event such as `bead.closed`, or all of a kind: `bead.*`'
const OUTPUT_KEY = '^[A-Za-z_][A-Za-z0-9_-]{0,127}$'
const OUTPUT_KEY_TEXT = 'letters, digits, `_` and `-`, at most 128, beginning with a letter or `_`'

export const MAX_STEPS = 1_000
export const MAX_LEVELS = 8
export const MAX_ITEMS = 1_000
/** Longest text that is read as a template, an expression or a command. */
const MAX_TEXT = 256 * 1024
const MAX_EXPRESSION = 4_096
export const MAX_COMMAND = 64 * 1024

export const template = (options: { minLength?: number; description?: string } = {}) =>
  text({ ...options, language: 'template', maxLength: MAX_TEXT })
/** A duration that says something. */
export const span = (options: { default?: string; minimumMs?: number } = {}) => duration({ ...options, minLength: 1 })
const expression = () => text({ language: 'expression', minLength: 1, maxLength: MAX_EXPRESSION })
export const command = () => text({ minLength: 1, maxLength: MAX_COMMAND })
const eventFilter = () => text({ pattern: EVENT_FILTER, description: EVENT_FILTER_TEXT, maxLength: 128 })
const varName = () => text({ pattern: VAR_NAME, description: VAR_NAME_TEXT })

/** Variables of the environment for a command. */
export const commandEnv = {
  env: optional(
    map(text({ maxLength: MAX_COMMAND }), { secret: true, names: { pattern: ENV_NAME, words: ENV_NAME_TEXT } }),
  ),
  inherit_env: optional(list(text({ pattern: ENV_NAME, description: ENV_NAME_TEXT }), { maxItems: 100 })),
}
/** What an event must be to be waited for. */
export const eventMatch = (value: Schema) =>
  map(value, { names: { pattern: '^[^=]{1,256}$', words: 'a path of the payload' } })
export const eventType = eventFilter

/** A scalar is default and type; a table says more. */
const variable = raw<JsonValue>({
  ...table({
    type: optional(oneOf(VAR_TYPES)),
    description: optional(text()),
    default: optional(anything()),
    required: optional(flag({ default: false })),
    enum: optional(array(anything(), { minItems: 1, maxItems: 1_000 })),
    pattern: optional(text({ minLength: 1, maxLength: 1_000 })),
  }),
  type: ['object', 'string', 'integer', 'boolean'],
})

const retry = table({
  max_attempts: whole({ minimum: 1, maximum: 100 }),
  backoff: optional(span({ default: '10s' })),
  max_backoff: optional(span({ default: '10m' })),
})
const check = table(
  {
    exec: optional(command()),
    exec_var: optional(varName()),
    timeout: optional(span({ default: '5m', minimumMs: 1 })),
    ...commandEnv,
    manual: optional(template({ minLength: 1 })),
  },
  { rules: { oneOf: ['exec', 'exec_var', 'manual'], excludes: { manual: ['timeout', 'env', 'inherit_env'] } } },
)
const forEach = table({
  in: expression(),
  as: optional(varName()),
  max_parallel: optional(whole({ minimum: 1, maximum: MAX_ITEMS, default: 10 })),
  stop_on_fail: optional(flag({ default: false })),
  exclusive: optional(flag({ default: false })),
})
const loop = table(
  {
    count: optional(
      raw<number | string>({
        type: ['integer', 'string'],
        minimum: 0,
        maximum: MAX_ITEMS,
        minLength: 1,
        maxLength: MAX_EXPRESSION,
        ...note({ language: 'expression' }),
      }),
    ),
    range: optional(expression()),
    as: optional(varName()),
  },
  { rules: { oneOf: ['count', 'range'] } },
)
const gate = table(
  {
    human: optional(flag()),
    timer: optional(template({ minLength: 1 })),
    event: optional(eventFilter()),
    match: optional(eventMatch(template())),
  },
  { rules: { oneOf: ['human', 'timer', 'event'], needs: { match: 'event' } } },
)

/** Bodies of a step beside plain work. */
export const BODIES = ['gate', 'children', 'expand'] as const
export const ON_FAIL = ['fail', 'continue', 'abort'] as const

const stepFields: Record<string, Schema> = {
  id: text({ pattern: STEP_ID, description: STEP_ID_TEXT }),
  title: optional(template({ minLength: 1 })),
  description: optional(template()),
  needs: optional(texts({ maxItems: MAX_STEPS })),
  condition: optional(expression()),
  target: optional(template({ minLength: 1 })),
  assignee: optional(template({ minLength: 1 })),
  priority: optional(whole({ minimum: 0, maximum: 4 })),
  tags: optional(list(template({ minLength: 1 }), { maxItems: 100 })),
  metadata: optional(
    map(template(), { names: { pattern: '^(?!svc\\.).{1,256}$', words: 'keys of `svc.` are made by the service' } }),
  ),
  output: optional(list(text({ pattern: OUTPUT_KEY, description: OUTPUT_KEY_TEXT }), { maxItems: 100 })),
  timeout: optional(span({ minimumMs: 1 })),
  always: optional(flag({ default: false })),
  on_fail: optional(oneOf(ON_FAIL, { default: 'fail' })),
  retry: optional(retry),
  check: optional(check),
  for_each: optional(forEach),
  loop: optional(loop),
  gate: optional(gate),
  expand: optional(text({ pattern: FORMULA_NAME, description: FORMULA_NAME_TEXT })),
  with: optional(map(anything())),
}
/** Steps of steps: the one schema here that holds itself. What does not go together is decision 83. */
export const Step = table(stepFields, {
  rules: {
    excludes: {
      gate: [
        'children',
        'expand',
        'check',
        'retry',
        'output',
        'target',
        'for_each',
        'loop',
        'priority',
        'tags',
        'metadata',
      ],
      children: ['expand', 'assignee', 'priority', 'tags', 'metadata', 'output'],
      expand: ['assignee', 'priority', 'tags', 'metadata', 'output'],
      loop: ['for_each'],
      assignee: ['target'],
    },
    needs: { with: 'expand' },
  },
})
stepFields['children'] = optional(list(Step, { minItems: 1 }))

export const FormulaFile = table({
  formula: text({ pattern: FORMULA_NAME, description: FORMULA_NAME_TEXT }),
  title: optional(template({ minLength: 1 })),
  description: optional(template()),
  extends: optional(texts({ maxItems: 20 })),
  target: optional(template({ minLength: 1 })),
  timeout: optional(span({ minimumMs: 1 })),
  vars: optional(map(variable, { names: { pattern: VAR_NAME, words: VAR_NAME_TEXT } })),
  steps: optional(list(Step)),
})

/** Keys of other systems and of earlier grammars (decision 117), and what to write instead. */
export const DROPPED_FORMULA_KEYS: ReadonlyMap<string, string> = new Map([
  ['type', 'every formula is of one kind: leave it out'],
  ['template', 'write `steps`; other formulas put them in with `expand`'],
  ['compose', 'write `extends`, or a step with `expand`'],
  ['advice', 'write `extends`, or a step with `expand`'],
  ['requires', 'leave it out: there is one grammar'],
  ['contract', 'leave it out: there is one grammar'],
  ['version', 'leave it out: there is one grammar'],
  ['phase', 'leave it out: there is one grammar'],
  ['catalog', 'leave it out: every formula is listed'],
  ['name', 'write `formula` for the name, `title` for people'],
  ['params', 'write `vars`'],
  ['convergence', 'write a step with `retry` and `check`'],
  ['formula_v2', 'leave it out: there is one grammar'],
  ['drain', 'write `for_each = { in = "bead.members" }`'],
  ['on_complete', 'write a step that needs this one, with `for_each = { in = "steps.<id>.output.<key>" }`'],
  ['until', 'write `retry` with `check`, or `loop` with `count`'],
  ['waits_for', 'write `needs`'],
  ['depends_on', 'write `needs`'],
  ['pool', 'write `target`'],
  ['labels', 'write `tags`'],
  ['notes', 'write `description`'],
  ['description_file', "write a fragment and render it: `{% render 'name' %}`"],
  ['expand_vars', 'write `with`'],
  ['body', 'write `children`'],
  ['no_work_gate', 'write `overlap = "allow"` in an order'],
  ['max_units', 'a list has at most 1,000 items; `max_parallel` says how many run at once'],
  ['on_exhausted', 'write `on_fail` of the step'],
  ['wisp_type', 'leave it out'],
])

/** Names that a variable cannot have: what every text sees already, and words of the language. */
export const RESERVED_NAMES = [
  'bead',
  'steps',
  'item',
  'index',
  'attempt',
  'previous',
  'molecule',
  'city',
  'rig',
  'event',
  'events',
] as const
export const LANGUAGE_WORDS = [
  'true',
  'false',
  'nil',
  'null',
  'empty',
  'blank',
  'and',
  'or',
  'not',
  'contains',
  'forloop',
  'tablerowloop',
] as const
