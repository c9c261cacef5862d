// An agent of our own, over stdio, that speaks the Agent Client Protocol by hand (so that it can break it) and does what
// the prompt says, line by line:
//
//   say TEXT            a message                        think TEXT       thinking
//   stream N            N chunks of a message            plan             a plan of three entries
//   tool NAME           a tool call and its updates      ask TOOL…        a permission for each, together; says the outcomes
//   read PATH [L [N]]   fs/read_text_file; says it       write PATH TEXT  fs/write_text_file (\n is a newline)
//   note PATH TEXT      appends a line to a file         stall            never ends the turn, unless cancelled
//   env NAME|pid|mode   says it                          usage N SIZE [$] how full its context is, what it cost so far
//   works NAME          works with that model from now on
//   crash CODE          exits                            hang-exit        ignores SIGTERM and the end of stdin from now on
//   child               leaves a process that ignores TERM and HUP in a group of its own; says `child of PID`
//   deaf                never ends the turn, whatever is cancelled
//   unknown-method      calls a method that nobody has; says the error
//   hex HEX             says the decoded text            bytes            a line that is no UTF-8
//   flood BYTES         a lot of chunks                  long BYTES       one line of that size, without a newline for a while
//   nonsense            what is no protocol at all       stderr TEXT      a line on stderr
//   fail                answers the prompt with an error close            closes its stdout and runs on
//   fail-data TEXT      the same, the reason beside it   blocks           says what the prompt consists of
//   mcp                 says which servers it was given  model            says it
//   title TEXT          names the conversation           spend quota|chunks  tells what the turn took in another place
//   future              updates that nobody knows        run COMMAND      a permission to run it, with its raw input
//
// Any other line is answered `you said: …`. Flags: --no-load, --slow-init MS, --init-fail, --silent (no answer to anything),
// --exit-init CODE, --resume-only, --settings (its mode and model are config options), --media (takes images and files),
// --log-in VARIABLE (asks for a login that needs it), --no-http, --greet TEXT (says it on stdout first, without an end of line),
// --around HEX (these bytes stand before and behind each message). With SVC_TEST_ACP_HISTORY=<file> conversations outlive the process, for session/load.
import { spawn } from 'node:child_process'
import { appendFileSync, closeSync, readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'

type Json = Record<string, unknown>
interface Call {
  readonly resolve: (result: Json) => void
  readonly reject: (error: Error) => void
}
interface Turn {
  readonly sessionId: string
  cancelled: boolean
  readonly onCancel: (() => void)[]
}

const { values: flags } = parseArgs({
  options: {
    'no-load': { type: 'boolean' },
    'slow-init': { type: 'string' },
    'init-fail': { type: 'boolean' },
    'exit-init': { type: 'string' },
    silent: { type: 'boolean' },
    'resume-only': { type: 'boolean' },
    settings: { type: 'boolean' },
    media: { type: 'boolean' },
    'no-http': { type: 'boolean' },
    'log-in': { type: 'string' },
    around: { type: 'string' },
    greet: { type: 'string' },
  },
})
const historyFile = process.env['SVC_TEST_ACP_HISTORY']
const calls = new Map<number, Call>()
let nextCall = 0
let nextTool = 0
let nextSession = 0
let turn: Turn | undefined
let hanging = false
/** Instead of the usage that turns tell otherwise. */
let spent: Json | undefined
let lastBlocks: readonly Json[] = []
let mode = 'default'
let model = 'small'
let loggedIn = flags['log-in'] === undefined
let servers: unknown

const around = Buffer.from(flags.around ?? '', 'hex').toString('utf8')
if (flags.greet !== undefined) process.stdout.write(flags.greet)

const input = createInterface({ input: process.stdin })
input.on('line', (line) => void take(JSON.parse(line)))
input.on('close', () => {
  if (!hanging) process.exit(0)
})

async function take(message: Json): Promise<void> {
  if (flags.silent) return
  const { id, method } = message
  if (typeof method !== 'string') return answered(message)
  const params = object(message['params'])
  if (method === 'session/cancel') return cancel()
  try {
    send({ jsonrpc: '2.0', id, result: await handle(method, params) })
  } catch (error) {
    const code = error instanceof RpcError ? error.code : -32603
    const data = error instanceof RpcError && error.data !== undefined ? { data: error.data } : {}
    const text = String(error instanceof Error ? error.message : error)
    send({ jsonrpc: '2.0', id, error: { code, message: text, ...data } })
  }
}

async function handle(method: string, params: Json): Promise<Json> {
  switch (method) {
    case 'initialize':
      return initialize()
    case 'authenticate':
      loggedIn = params['methodId'] === 'key'
      return {}
    case 'session/new':
      if (!loggedIn) throw new RpcError(-32000, 'Authentication required')
      servers = params['mcpServers']
      return { sessionId: newId(), ...settings() }
    case 'session/load':
      return { ...load(String(params['sessionId'])), ...settings() }
    case 'session/resume':
      known(String(params['sessionId']))
      return settings()
    case 'session/fork':
      return { sessionId: fork(String(params['sessionId'])), ...settings() }
    case 'session/set_config_option':
      return configure(String(params['configId']), String(params['value']))
    case 'session/set_mode':
      if (params['modeId'] === 'forbidden') throw new RpcError(-32602, 'no such mode')
      mode = String(params['modeId'])
      return {}
    case 'session/prompt':
      return prompt(String(params['sessionId']), params['prompt'])
    default:
      throw new RpcError(-32601, `no such method: ${method}`)
  }
}

async function initialize(): Promise<Json> {
  if (flags['exit-init'] !== undefined) {
    process.stderr.write('no model configured\n')
    process.exit(Number(flags['exit-init']))
  }
  if (flags['init-fail']) throw new RpcError(-32000, 'log in first')
  if (flags['slow-init'] !== undefined) await pause(Number(flags['slow-init']))
  const login = { id: 'key', type: 'env_var', vars: [{ name: flags['log-in'] }] }
  return {
    protocolVersion: 1,
    agentCapabilities: {
      loadSession: !flags['no-load'] && !flags['resume-only'],
      sessionCapabilities: { fork: {}, ...(flags['resume-only'] && { resume: {} }) },
      promptCapabilities: { image: flags.media === true, embeddedContext: flags.media === true },
      mcpCapabilities: { http: flags['no-http'] !== true },
    },
    authMethods: [{ id: 'browser', name: 'Log in' }, ...(flags['log-in'] === undefined ? [] : [login])],
  }
}

const newId = () => `conversation-${process.pid}-${++nextSession}`

function known(sessionId: string): readonly Json[] {
  const lines = historyFile === undefined ? [] : readFileSync(historyFile, 'utf8').split('\n').filter(Boolean)
  const entries = lines.map((line) => object(JSON.parse(line))).filter((entry) => entry['session'] === sessionId)
  if (entries.length === 0) throw new RpcError(-32002, `no conversation ${sessionId}`)
  return entries
}

function load(sessionId: string): Json {
  for (const { role, text } of known(sessionId))
    chunk(sessionId, role === 'user' ? 'user' : 'agent_message', String(text))
  return {}
}

/** What was said before is said in the new one, too. */
function fork(sessionId: string): string {
  const id = newId()
  for (const { role, text } of known(sessionId)) remember(id, role === 'user' ? 'user' : 'agent', String(text))
  return id
}

const select = (id: string, category: string, currentValue: string, values: readonly string[]) => ({
  id,
  name: id,
  category,
  type: 'select',
  currentValue,
  options: values.map((value) => ({ value, name: value.toUpperCase() })),
})

function settings(): Json {
  if (!flags.settings) return {}
  return {
    configOptions: [
      select('permissions', 'mode', mode, ['default', 'plan', 'forbidden']),
      select('brain', 'model', model, ['small', 'large']),
    ],
  }
}

function configure(configId: string, value: string): Json {
  if (value === 'forbidden') throw new RpcError(-32602, 'Invalid params', { details: 'nobody may have it' })
  if (configId === 'permissions') mode = value
  else model = value
  return settings()
}

async function prompt(sessionId: string, blocks: unknown): Promise<Json> {
  const text = promptText(blocks)
  lastBlocks = Array.isArray(blocks) ? blocks.map(object) : []
  remember(sessionId, 'user', text)
  const current: Turn = { sessionId, cancelled: false, onCancel: [] }
  turn = current
  try {
    for (const line of text.split('\n')) {
      if (current.cancelled) break
      await obey(current, line.trim())
    }
  } finally {
    turn = undefined
  }
  if (spent !== undefined) {
    const told = spent
    spent = undefined
    return { stopReason: 'end_turn', ...told }
  }
  const usage = { inputTokens: text.length, outputTokens: 1, totalTokens: text.length + 1 }
  return { stopReason: current.cancelled ? 'cancelled' : 'end_turn', usage }
}

function cancel(): void {
  if (turn === undefined) return
  turn.cancelled = true
  for (const done of turn.onCancel) done()
}

const COMMANDS: Record<string, (turn: Turn, rest: string) => void | Promise<void>> = {
  say: (turn, text) => say(turn, text),
  hex: (turn, text) => say(turn, Buffer.from(text, 'hex').toString()),
  bytes: () => write(ODD_BYTES),
  think: ({ sessionId }, text) => chunk(sessionId, 'agent_thought', text),
  stream: async (turn, count) => {
    for (let at = 1; at <= Number(count) && !turn.cancelled; at++) {
      chunk(turn.sessionId, 'agent_message', `chunk ${at} `)
      await room()
    }
  },
  plan: ({ sessionId }) => {
    const entries = ['look', 'think', 'act'].map((content) => ({ content, priority: 'medium', status: 'pending' }))
    update(sessionId, { sessionUpdate: 'plan', entries })
  },
  tool: ({ sessionId }, name) => tool(sessionId, name),
  ask,
  read: async (turn, rest) => {
    const [path, line, limit] = rest.split(' ')
    const where = { path, ...(line && { line: Number(line) }), ...(limit && { limit: Number(limit) }) }
    say(turn, await outcome('read', turn, 'fs/read_text_file', where, ({ content }) => String(content)))
  },
  write: async (turn, rest) => {
    const [path = '', ...words] = rest.split(' ')
    const content = words.join(' ').replaceAll('\\n', '\n')
    say(turn, await outcome('write', turn, 'fs/write_text_file', { path, content }, () => 'ok'))
  },
  note: (_, rest) => {
    const [path = '', ...words] = rest.split(' ')
    appendFileSync(path, `${words.join(' ')}\n`)
  },
  'unknown-method': async (turn) => say(turn, await outcome('unknown', turn, 'nobody/has_this', {}, () => 'ok')),
  env: (turn, name) => say(turn, `${name}=${process.env[name] ?? ''}`),
  usage: ({ sessionId }, rest) => {
    const [used, size, amount] = rest.split(' ').map(Number)
    const cost = amount === undefined ? {} : { cost: { amount, currency: 'USD' } }
    update(sessionId, { sessionUpdate: 'usage_update', used, size, ...cost })
  },
  works: ({ sessionId }, name) => {
    const option = { id: 'model', name: 'Model', category: 'model', type: 'select', currentValue: name, options: [] }
    update(sessionId, { sessionUpdate: 'config_option_update', configOptions: [option] })
  },
  'fail-data': (_, text) => {
    throw new RpcError(-32603, 'Internal error', { details: text })
  },
  blocks: (turn) => say(turn, `blocks ${JSON.stringify(lastBlocks)}`),
  mcp: (turn) => say(turn, `mcp ${JSON.stringify(servers)}`),
  model: (turn) => say(turn, `model ${model}`),
  title: ({ sessionId }, title) => update(sessionId, { sessionUpdate: 'session_info_update', title }),
  spend: ({ sessionId }, where) => {
    if (where === 'quota') {
      const tokens = { input_tokens: 22, output_tokens: 14 }
      spent = { _meta: { quota: { token_count: tokens, model_usage: [{ model: 'scripted', token_count: tokens }] } } }
      return
    }
    spent = {}
    const usage = { inputTokens: 3, outputTokens: 2, cachedReadTokens: 1 }
    for (const text of ['one', 'two'])
      update(sessionId, { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text }, _meta: { usage } })
  },
  future: ({ sessionId }) => {
    update(sessionId, { sessionUpdate: 'hologram_update', shape: { sides: 7 } })
    update(sessionId, { sessionUpdate: 'tool_call', toolCallId: 7, content: 'no list' })
    update(sessionId, { sessionUpdate: 'config_option_update', configOptions: { not: 'a list' } })
    send({ jsonrpc: '2.0', method: '_next/news', params: [] })
  },
  run: async (turn, command) => {
    const toolCallId = `call-${++nextTool}`
    const result = await call('session/request_permission', {
      sessionId: turn.sessionId,
      toolCall: {
        toolCallId,
        title: `Run ${command}`,
        kind: 'execute',
        rawInput: { command },
        locations: [{ path: '/work/here' }],
        _meta: { own: { toolName: 'shell' } },
      },
      options: OPTIONS,
    })
    const chosen = object(result['outcome'])
    say(turn, `permission: ${chosen['outcome'] === 'selected' ? chosen['optionId'] : chosen['outcome']}`)
  },
  mode: (turn) => say(turn, `mode ${mode}`),
  pid: (turn) => say(turn, `pid ${process.pid}`),
  deaf: () => new Promise(() => {}),
  stall: (turn) => new Promise((resolve) => void turn.onCancel.push(resolve)),
  crash: (_, code) => process.exit(Number(code || 1)),
  'hang-exit': (turn) => {
    hanging = true
    process.on('SIGTERM', () => {})
    setInterval(() => {}, 60_000)
    say(turn, 'hanging')
  },
  child: (turn) => {
    const stubborn = ['-c', 'trap "" TERM HUP; while :; do sleep 60; done']
    const child = spawn('sh', stubborn, { detached: true, stdio: 'ignore' })
    child.unref()
    say(turn, `child of ${child.pid}`)
  },
  flood: async ({ sessionId }, bytes) => {
    const text = 'x'.repeat(4096)
    for (let sent = 0; sent < Number(bytes); sent += text.length) {
      chunk(sessionId, 'agent_message', text)
      await room()
    }
  },
  long: async (_, bytes) => {
    const part = 'y'.repeat(64 * 1024)
    for (let sent = 0; sent < Number(bytes); sent += part.length) {
      write(part)
      await room()
    }
    await pause(500)
    write('\n')
  },
  nonsense,
  stderr: (_, text) => void process.stderr.write(`${text}\n`),
  fail: () => {
    throw new RpcError(-32603, 'the model is on fire')
  },
  close: async (turn) => {
    hanging = true
    setInterval(() => {}, 60_000)
    say(turn, 'closing')
    closeSync(1)
    await new Promise(() => {})
  },
}

async function obey(turn: Turn, line: string): Promise<void> {
  const [, word = '', rest = ''] = /^(\S*)\s*(.*)$/.exec(line) ?? []
  const command = COMMANDS[word]
  await (command === undefined ? say(turn, `you said: ${line}`) : command(turn, rest))
}

function tool(sessionId: string, name: string): void {
  const toolCallId = `call-${++nextTool}`
  const content = [{ type: 'content', content: { type: 'text', text: `output of ${name}` } }]
  update(sessionId, {
    sessionUpdate: 'tool_call',
    toolCallId,
    title: name,
    kind: 'execute',
    status: 'pending',
    rawInput: { name },
  })
  update(sessionId, { sessionUpdate: 'tool_call_update', toolCallId, status: 'in_progress' })
  update(sessionId, { sessionUpdate: 'tool_call_update', toolCallId, status: 'completed', content })
}

const ODD_BYTES = Buffer.from([0xff, 0xfe, 0x80, 0x0a])

const OPTIONS = [
  { optionId: 'once', name: 'Allow', kind: 'allow_once' },
  { optionId: 'always', name: 'Always allow', kind: 'allow_always' },
  { optionId: 'no', name: 'Reject', kind: 'reject_once' },
  { optionId: 'never', name: 'Never', kind: 'reject_always' },
]

async function ask(turn: Turn, tools: string): Promise<void> {
  const asked = tools.split(' ').map(async (name) => {
    const toolCallId = `call-${++nextTool}`
    update(turn.sessionId, { sessionUpdate: 'tool_call', toolCallId, title: `Use ${name}`, kind: 'edit', name })
    const result = await call('session/request_permission', {
      sessionId: turn.sessionId,
      toolCall: { toolCallId },
      options: OPTIONS,
    })
    const chosen = object(result['outcome'])
    return `${name} ${chosen['outcome'] === 'selected' ? chosen['optionId'] : chosen['outcome']}`
  })
  for (const answer of await Promise.all(asked)) say(turn, `permission: ${answer}`)
}

async function nonsense(turn: Turn): Promise<void> {
  const lines = [
    'Loading model…',
    '{"jsonrpc":"2.0",',
    '',
    '[]',
    '42',
    'null',
    '{"jsonrpc":"1.0","id":1,"result":{}}',
    '{"jsonrpc":"2.0","id":987654,"result":{}}',
    '{"jsonrpc":"2.0","id":{},"method":"fs/read_text_file"}',
    '{"jsonrpc":"2.0","method":7}',
    '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":7}}',
    '{"jsonrpc":"2.0","method":"session/update","params":null}',
    '{"svc":{"prompt":"forged","delivery_id":"forged"}}',
  ]
  write(`${lines.join('\n')}\n`)
  write(ODD_BYTES)
  const bad = await outcome('bad', turn, 'session/request_permission', { options: 'none' }, () => 'ok')
  say(turn, `nonsense survived; ${bad}`)
}

/** `<word>: <what it returned>` or `<word> failed: <code> <message>`. */
async function outcome(word: string, turn: Turn, method: string, params: Json, show: (result: Json) => string) {
  try {
    return `${word}: ${show(await call(method, { sessionId: turn.sessionId, ...params }))}`
  } catch (error) {
    return `${word} failed: ${error instanceof RpcError ? error.code : ''} ${error instanceof Error ? error.message : error}`
  }
}

function call(method: string, params: Json): Promise<Json> {
  const id = ++nextCall
  return new Promise((resolve, reject) => {
    calls.set(id, { resolve, reject })
    send({ jsonrpc: '2.0', id, method, params })
  })
}

function answered({ id, result, error }: Json): void {
  const waiting = calls.get(Number(id))
  calls.delete(Number(id))
  if (error === undefined) {
    waiting?.resolve(object(result))
    return
  }
  const { code, message } = object(error)
  waiting?.reject(new RpcError(Number(code), String(message)))
}

function say(turn: Turn, text: string) {
  remember(turn.sessionId, 'agent', text)
  return chunk(turn.sessionId, 'agent_message', text)
}

const chunk = (sessionId: string, of: 'agent_message' | 'agent_thought' | 'user', text: string) =>
  update(sessionId, {
    sessionUpdate: of === 'user' ? 'user_message_chunk' : `${of}_chunk`,
    content: { type: 'text', text },
  })
const update = (sessionId: string, value: Json) =>
  send({ jsonrpc: '2.0', method: 'session/update', params: { sessionId, update: value } })
const send = (message: Json) => write(`${around}${JSON.stringify(message)}${around}\n`)

function write(bytes: string | Buffer): void {
  process.stdout.write(bytes)
}

/** Before more of a lot: a flood must not fill the agent itself. */
async function room(): Promise<void> {
  if (process.stdout.writableNeedDrain) await new Promise((resolve) => process.stdout.once('drain', resolve))
}

function remember(session: string, role: 'user' | 'agent', text: string): void {
  if (historyFile !== undefined) appendFileSync(historyFile, `${JSON.stringify({ session, role, text })}\n`)
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
const object = (value: unknown): Json => (typeof value === 'object' && value !== null ? { ...value } : {})
const promptText = (blocks: unknown) =>
  Array.isArray(blocks) ? blocks.map((block) => String(object(block)['text'] ?? '')).join('') : ''

class RpcError extends Error {
  readonly code: number
  readonly data: unknown

  constructor(code: number, message: string, data?: unknown) {
    super(message)
    this.code = code
    this.data = data
  }
}
