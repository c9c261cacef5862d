import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { inheritedEnvironment, terminalDefaults } from './inherited.ts'

const OURS = {
  PATH: '/bin',
  HOME: '/home/ann',
  LANG: 'C.UTF-8',
  LC_ALL: 'C',
  AWS_SECRET_ACCESS_KEY: 'k1',
  AWS_REGION: 'eu',
  GH_TOKEN: 'k2',
  ANTHROPIC_API_KEY: 'k3',
  SVC_TOKEN: 'master',
  SVC_HOME: '/home/ann/.svc',
  TMUX: '/tmp/tmux',
  CI: 'true',
  GITHUB_ACTIONS: 'true',
}
const namesOf = (...args: Parameters<typeof inheritedEnvironment> extends [unknown, ...infer Rest] ? Rest : never) =>
  Object.keys(inheritedEnvironment(OURS, ...args))

const CASES: readonly [string, Parameters<typeof namesOf>, readonly string[]][] = [
  [
    'everything but what is the supervisor’s own, where nothing is said',
    [{}, {}],
    ['PATH', 'HOME', 'LANG', 'LC_ALL', 'AWS_SECRET_ACCESS_KEY', 'AWS_REGION', 'GH_TOKEN', 'ANTHROPIC_API_KEY'],
  ],
  [
    'no secret of a cloud that the city denies',
    [{ env_deny: ['AWS_*', 'G?_TOKEN'], inherit_env: 'all' }, {}],
    ['PATH', 'HOME', 'LANG', 'LC_ALL', 'ANTHROPIC_API_KEY'],
  ],
  [
    'what the city lists, and what every program needs',
    [{ inherit_env: ['ANTHROPIC_*'] }, {}],
    ['PATH', 'HOME', 'LANG', 'LC_ALL', 'ANTHROPIC_API_KEY'],
  ],
  ['what the provider lists', [{}, { inherit_env: ['GH_TOKEN'] }], ['PATH', 'HOME', 'LANG', 'LC_ALL', 'GH_TOKEN']],
  [
    'no more than the city lists, whatever the provider of a pack says',
    [{ inherit_env: ['AWS_REGION'] }, { inherit_env: ['AWS_*', 'SVC_*'] }],
    ['PATH', 'HOME', 'LANG', 'LC_ALL', 'AWS_REGION'],
  ],
  [
    'no more than that either',
    [{ inherit_env: ['AWS_REGION'] }, { inherit_env: 'all' }],
    ['PATH', 'HOME', 'LANG', 'LC_ALL', 'AWS_REGION'],
  ],
  [
    'nothing that is denied, also what every program needs',
    [{ inherit_env: [], env_deny: ['H*', 'L*'] }, {}],
    ['PATH'],
  ],
]

for (const [what, given, names] of CASES)
  test(`an agent inherits ${what}`, () => assert.deepEqual(namesOf(...given), names))

const passing = (...names: readonly string[]): readonly string[] =>
  Object.keys(inheritedEnvironment(Object.fromEntries(names.map((name) => [name, '1'])), {}, {}))

test('nothing that git says of one repository reaches an agent', () => {
  const names = execFileSync('git', ['rev-parse', '--local-env-vars'], { encoding: 'utf8' }).trim().split('\n')
  assert.ok(names.length > 10)
  assert.deepEqual(passing(...names), [])
  const kept = ['GIT_AUTHOR_NAME', 'GIT_AUTHOR_EMAIL', 'GIT_SSH_COMMAND', 'GIT_CONFIG_GLOBAL', 'GIT_LFS_SKIP_SMUDGE']
  const hook = ['GIT_CONFIG_KEY_0', 'GIT_CONFIG_VALUE_0', 'GIT_EDITOR', 'GIT_EXEC_PATH', 'GIT_QUARANTINE_PATH']
  assert.deepEqual(passing(...hook, ...kept), kept)
})

test('no mark of an outer session of a harness reaches an agent, and its settings do', () => {
  const marks = [
    'CLAUDECODE',
    'CLAUDE_CODE_ENTRYPOINT',
    'CLAUDE_CODE_SESSION_ID',
    'CLAUDE_CODE_SSE_PORT',
    'CLAUDE_CODE_REMOTE_SESSION_ID',
    'CLAUDE_CODE_SOMETHING_NEW',
    'CODEX_SANDBOX',
    'CODEX_SANDBOX_NETWORK_DISABLED',
    'CODEX_THREAD_ID',
    'GEMINI_CLI',
    'QWEN_CODE',
    'OPENCODE',
    'CURSOR_AGENT',
    'AGENT',
  ]
  const settings = [
    'CLAUDE_CODE_USE_BEDROCK',
    'CLAUDE_CODE_OAUTH_TOKEN',
    'CLAUDE_CODE_MAX_OUTPUT_TOKENS',
    'CLAUDE_CONFIG_DIR',
    'CODEX_HOME',
    'CODEX_API_KEY',
    'GEMINI_API_KEY',
    'OPENCODE_CONFIG',
    'ANTHROPIC_MODEL',
  ]
  assert.deepEqual(passing(...marks, ...settings), settings)
})

test('nothing of the terminal, the build or the unit that the supervisor runs in reaches an agent', () => {
  const own = ['TERM_PROGRAM', 'VSCODE_IPC_HOOK_CLI', 'PWD', 'OLDPWD', 'SHLVL', 'COLUMNS', 'MAKEFLAGS', 'INVOCATION_ID']
  const kept = [
    'SHELL',
    'EDITOR',
    'SSH_AUTH_SOCK',
    'DISPLAY',
    'XDG_RUNTIME_DIR',
    'NVM_DIR',
    'VIRTUAL_ENV',
    'HTTPS_PROXY',
  ]
  assert.deepEqual(passing(...own, 'NOTIFY_SOCKET', 'ITERM_SESSION_ID', ...kept), kept)
})

test('an agent of a bare supervisor has UTF-8 and colours, and others what they were given', () => {
  const bare = terminalDefaults({})
  assert.match(bare['LANG'] ?? '', /UTF-8$/)
  assert.equal(bare['COLORTERM'], 'truecolor')
  assert.deepEqual(terminalDefaults({ LC_ALL: 'de_DE', COLORTERM: '24bit' }), {
    TERM: 'xterm-256color',
    COLORTERM: '24bit',
  })
})
