import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AGENT, VIEW } from '../../../../test/support/session-city.ts'
import type { AgentView, ProviderView } from '../record/config-view.ts'
import { policyOf } from '../record/policy.ts'
import type { SessionRecord } from '../record/record.ts'
import { type LaunchContext, planLaunch, splitCommand } from './launch.ts'
import { newSession } from './new-session.ts'
import { checkOptions } from './options.ts'

const CLAUDE: ProviderView = {
  command: 'claude',
  args: ['--verbose', '--permission-mode', 'plan'],
  prompt_mode: 'arg',
  delivery: 'tui',
  resume_flag: '--resume',
  resume_style: 'flag',
  session_id_flag: '--session-id',
  hooks: false,
  options_schema: [
    {
      key: 'permission_mode',
      default: 'auto',
      choices: [
        { value: 'auto', flag_args: ['--permission-mode', 'acceptEdits'] },
        { value: 'plan', flag_args: ['--permission-mode', 'plan'] },
      ],
    },
    { key: 'model', default: '', choices: [{ value: '' }, { value: 'opus', flag_args: ['--model', 'opus'] }] },
  ],
}

interface Asked {
  readonly provider?: Partial<ProviderView>
  readonly agent?: Partial<AgentView>
  readonly session?: Partial<SessionRecord>
  readonly context?: Partial<LaunchContext>
}

function plan({ provider, agent, session, context }: Asked = {}) {
  const own: AgentView = { ...AGENT, identity: 'mayor', ...agent }
  const config = { ...VIEW, agents: [own] }
  const record: SessionRecord = {
    ...newSession(
      's-0123456789abcdef',
      { kind: 'agent', template: 'mayor', origin: 'manual', cause: 'explicit', alias: 'boss' },
      { config, now: 0, render: (text) => text },
    ),
    ...session,
  }
  return planLaunch(
    record,
    { sessionId: record.id, generation: 3, token: 'f'.repeat(32) },
    {
      config,
      agent: own,
      provider: { ...CLAUDE, ...provider },
      family: 'claude',
      interruptKey: 'ctrl-c',
      policy: policyOf(config),
      mcpServers: [],
      home: '/home/svc',
      bin: '/opt/svc',
      env: { PATH: '/bin', HOME: '/root', SVC_API: 'http://old', TMUX: 'x', KEY: 'k1' },
      workDir: '/work',
      prompt: 'Be good.',
      message: undefined,
      access: undefined,
      render: (template, values) => template.replaceAll(/\{\{ (\w+) \}\}/g, (_, name: string) => values[name] ?? ''),
      uuid: () => 'uuid-1',
      now: Date.UTC(2026, 0, 2, 3, 4, 5),
      ...context,
    },
  )
}

test('options become arguments in their order, and replace what says the same', () => {
  const { spec } = plan({ session: { options: { model: 'opus' } }, provider: { prompt_mode: 'omit' } })
  assert.deepEqual(spec.args.slice(0, 5), ['--verbose', '--permission-mode', 'acceptEdits', '--model', 'opus'])
})

test('a first start names its conversation and is told its prompt behind a beacon', () => {
  const made = plan()
  assert.deepEqual(made.spec.args.slice(-3), [
    '--session-id',
    'uuid-1',
    '[alpha] mayor-adhoc-0123456789 • 2026-01-02T03:04:05\n\nBe good.',
  ])
  assert.deepEqual([made.facts.conversation, made.resumed, made.promptInLaunch], ['uuid-1', false, true])
  assert.equal(made.conversationId, undefined, 'nobody has said anything in it yet')
})

test('a later one resumes it and says nothing', () => {
  const made = plan({ session: { conversation_id: 'k', generation: 2 } })
  assert.deepEqual(made.spec.args.slice(-2), ['--resume', 'k'])
  assert.deepEqual([made.resumed, made.promptInLaunch, made.typedPrompt], [true, false, undefined])
})

test('a fresh one does not', () => {
  assert.equal(plan({ session: { conversation_id: 'k', generation: 2, fresh: true } }).resumed, false)
  assert.equal(plan({ session: { conversation_id: 'k', generation: 2 }, agent: { wake_mode: 'fresh' } }).resumed, false)
})

test('a harness that resumes by a subcommand, or by a whole command', () => {
  const by = (provider: Partial<ProviderView>) => plan({ session: { conversation_id: 'k' }, provider }).spec
  assert.deepEqual(by({ resume_flag: 'threads continue', resume_style: 'subcommand', args: [] }).args.slice(0, 3), [
    'threads',
    'continue',
    'k',
  ])
  const { command, args } = by({ resume_command: 'claude-back --id {{ SessionKey }}' })
  assert.deepEqual([command, ...args], ['claude-back', '--id', 'k'])
})

test('a prompt goes behind a flag, is typed, or is left out', () => {
  assert.deepEqual(plan({ provider: { prompt_mode: 'flag', prompt_flag: '--say' } }).spec.args.at(-2), '--say')
  const typed = plan({ provider: { prompt_mode: 'none' }, context: { message: 'And now?' } })
  assert.match(typed.typedPrompt ?? '', /Be good\.\n\nAnd now\?$/)
  assert.equal(typed.promptInLaunch, false)
  const omitted = plan({ provider: { prompt_mode: 'omit' }, agent: { nudge: 'Go.' } })
  assert.deepEqual([omitted.typedPrompt, omitted.nudge, omitted.promptInLaunch], [undefined, undefined, false])
})

test('a prompt that no argument can hold is typed', () => {
  const made = plan({ context: { prompt: 'x'.repeat(200_000) } })
  assert.equal(made.promptInLaunch, false)
  assert.ok((made.typedPrompt?.length ?? 0) > 200_000)
})

test('over ACP the prompt is typed, options are left out, and the conversation is loaded', () => {
  const made = plan({
    session: { runtime: 'acp', conversation_id: 'k' },
    provider: { acp_command: 'claude-acp', acp_args: ['--stdio'] },
  })
  assert.deepEqual([made.spec.command, ...made.spec.args], ['claude-acp', '--stdio'])
  assert.equal(made.spec.acp?.resumeSessionId, 'k')
  assert.equal(made.spec.io, 'pipes')
})

test('a model that nobody has listed is passed as it is; arguments of the person’s own stay where none is chosen', () => {
  const provider: Partial<ProviderView> = {
    args: ['--model', 'mine', '-x'],
    options_schema: [
      {
        key: 'model',
        default: '',
        choices: [{ value: 'opus', flag_args: ['-m', 'opus'] }],
        free_args: ['--model', '{value}'],
      },
    ],
  }
  const args = (options: Record<string, string>) => plan({ session: { options }, provider }).spec.args
  assert.ok(args({}).join(' ').startsWith('--model mine -x'), args({}).join(' '))
  assert.ok(args({ model: 'vendor/next-1' }).join(' ').startsWith('-x --model vendor/next-1'))
  assert.ok(args({ model: 'opus' }).join(' ').startsWith('-x -m opus'))
  for (const bad of ['--dangerous', 'a\nb', 'x'.repeat(300)])
    assert.throws(() => checkOptions({ ...CLAUDE, ...provider }, { model: bad }, 'body.options'), /one line/)
})

test('what no flag says is a variable, or a mode of the agent protocol', () => {
  const provider: Partial<ProviderView> = {
    acp_args: ['acp'],
    options_schema: [
      {
        key: 'permission_mode',
        default: 'unrestricted',
        choices: [
          { value: 'ask', env: { PERMISSION: 'ask' } },
          { value: 'plan', flag_args: ['--agent', 'plan'], acp_mode: 'plan' },
          { value: 'unrestricted', env: { PERMISSION: 'allow' } },
        ],
      },
    ],
  }
  const chosen = (mode: string, own: Partial<ProviderView> = {}) => {
    const session = { runtime: 'acp' as const, options: mode === '' ? {} : { permission_mode: mode } }
    const { spec } = plan({ session, provider: { ...provider, ...own } })
    return [spec.acp?.settings?.['mode'], spec.env['PERMISSION'], spec.args]
  }
  assert.deepEqual(chosen('ask'), [undefined, 'ask', ['acp']])
  assert.deepEqual(chosen('plan'), ['plan', undefined, ['acp']])
  assert.deepEqual(chosen(''), [undefined, 'allow', ['acp']])
  // Who sets the variable knows better.
  assert.deepEqual(chosen('ask', { env: { PERMISSION: 'mine' } }), [undefined, 'mine', ['acp']])
})

test('over ACP a program that is run as always gets its flags', () => {
  const { args } = plan({ session: { runtime: 'acp', options: { model: 'opus' } } }).spec
  assert.deepEqual(args.slice(-2), ['--model', 'opus'])
})

test('an agent’s own command replaces the provider’s', () => {
  const { command, args } = plan({ agent: { start_command: 'bash -i', args: ['-x'], prompt_mode: 'omit' } }).spec
  assert.deepEqual([command, ...args], ['bash', '-i', '-x'])
})

test('commands that only a shell understands are given to one', () => {
  assert.deepEqual(splitCommand('a "b c" \'d\''), { command: 'a', args: ['b c', 'd'] })
  for (const text of ['a | b', 'X=1 a', 'a $HOME', 'a && b', 'a "unclosed', 'echo x >> f'])
    assert.deepEqual(splitCommand(text), { command: '/bin/sh', args: ['-c', text] })
})

test('the environment says who it is, hides the supervisor’s, and resolves references', () => {
  const { env } = plan({
    agent: { env: { TOKEN: '$KEY', HOME: '/agent' }, upstream: 'mine' },
    provider: { env: { A: 'p' }, upstream_env: { base_url: 'BASE', api_key: 'API_KEY' } },
    context: {
      config: {
        ...VIEW,
        workspace: { env: { A: 'w', B: 'w' } },
        upstreams: { mine: { base_url: 'http://model', api_key: '$KEY' } },
      },
    },
  }).spec
  const { SVC_SESSION_ID, SVC_AGENT, SVC_ALIAS, SVC_HOME, SVC_RUNTIME_EPOCH, SVC_INSTANCE_TOKEN } = env
  assert.deepEqual(
    [SVC_SESSION_ID, SVC_AGENT, SVC_ALIAS, SVC_HOME, SVC_RUNTIME_EPOCH, SVC_INSTANCE_TOKEN],
    ['s-0123456789abcdef', 'mayor-adhoc-0123456789', 'boss', '/home/svc', '3', 'f'.repeat(32)],
  )
  const { TOKEN, HOME, A, B, BASE, API_KEY, PATH, SVC_API, TMUX } = env
  assert.deepEqual(
    [TOKEN, HOME, A, B, BASE, API_KEY, PATH, SVC_API, TMUX],
    ['k1', '/agent', 'p', 'w', 'http://model', 'k1', '/opt/svc:/bin', undefined, undefined],
  )
})

test('a shell that somebody could sit at is one, and a script or another program that reads lines is none', () => {
  const shell = (start_command: string) =>
    plan({ provider: { delivery: 'line', prompt_mode: 'omit' }, agent: { start_command } }).facts.shell
  const shells = ['/bin/bash', 'zsh -il', 'bash --rcfile mine -i -o vi', 'fish --login']
  const others = ['bash agent.sh', 'sh -c "select x in a b; do :; done"', 'bash -lc x', 'python3', 'node agent.js']
  for (const line of shells) assert.equal(shell(line), true, line)
  for (const line of others) assert.equal(shell(line), false, line)
  assert.equal(plan({ agent: { start_command: 'bash' } }).facts.shell, false, 'what draws screens is none')
})

test('set-up commands are rendered', () => {
  const { preStart, live } = plan({
    agent: {
      pre_start: ['make {{ Agent }} in {{ WorkDir }}'],
      session_live: ['show {{ Session }}'],
      global_live: [{ command: 'from {{ ConfigDir }}', config_dir: '/pack' }],
    },
  })
  assert.deepEqual(preStart, ['make mayor-adhoc-0123456789 in /work'])
  assert.deepEqual(live, ['from /pack', 'show s-0123456789abcdef'])
})

test('hooks are laid beside the run by the flag of the harness, and not where it is told not to', () => {
  const laid = plan({ provider: { hooks: true, args: [] } })
  const file = '/alpha/.svc/runtime/sessions/s-0123456789abcdef/3/hooks-settings.json'
  assert.ok(laid.spec.args.join(' ').includes(`--settings ${file}`))
  assert.deepEqual(
    laid.hooks.files.map(({ path }) => path),
    [file],
  )
  assert.match(JSON.stringify(laid.hooks.files[0]?.settings), /'\/opt\/svc\/svcctl' session report --from claude/)
  const without: Asked[] = [
    { provider: { hooks: false } },
    { provider: { hooks: true }, agent: { hooks: false } },
    { provider: { hooks: true }, agent: { start_command: 'claude --resume x' } },
    { provider: { hooks: true, args: ['--settings', 'mine.json'] } },
    { provider: { hooks: true }, session: { runtime: 'acp' } },
    { provider: { hooks: true }, context: { family: 'shell' } },
    { provider: { hooks: true }, context: { family: 'gemini' } },
  ]
  for (const asked of without) {
    const { hooks, spec } = plan(asked)
    assert.deepEqual([hooks.files, hooks.env], [[], {}])
    assert.ok(!spec.args.some((word) => word.includes('hooks')))
  }
})

test('a harness whose hooks stand in settings of the whole machine gets those by a variable', () => {
  const { hooks, spec } = plan({ provider: { hooks: true, args: [] }, context: { family: 'qwen' } })
  const file = `${spec.directory}/hooks-settings.json`
  assert.deepEqual(hooks.env, { QWEN_CODE_SYSTEM_SETTINGS_PATH: file })
  assert.equal(hooks.files[0]?.over, '/etc/qwen-code/settings.json')
})
